"""JOB001 speaks of the log: what the job printed after an init shows that it went on, and a cut log shows nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tables import examples
from topodiag.api import diagnose

START = "".join(
    f"n1:{100 + rank}:{200 + rank} [{rank}] NCCL INFO ncclCommInitRankConfig comm 0x1{rank} rank {rank} nranks 2"
    f" cudaDev {rank} nvmlDev {rank} busId {rank + 1}b000 commId 0xabc - Init START\n"
    for rank in range(2)
)
SERVED = 'INFO:     127.0.0.1:0 - "POST /v1/completions HTTP/1.1" 200 OK\n'


def verdict(folder: Path, text: str) -> dict[str, Any]:
    file = folder / "server.log"
    file.write_text(text)
    document: dict[str, Any] = json.loads(diagnose(str(file)).to_json())
    return document


@examples("after", "states")
def test_a_job_hangs_only_where_somebody_waits(tmp_path: Path, after: str, states: set[str]) -> None:
    assert verdict(tmp_path, START + after)["verdict"]["state"] in states


@examples("after")
def test_an_init_that_the_log_leaves_open_is_no_cause_where_the_job_went_on_or_the_stream_was_cut(
    tmp_path: Path, after: str
) -> None:
    document = verdict(tmp_path, START + after)
    assert "JOB001" not in [cause["check"] for cause in document["verdict"]["causes"]]


@pytest.mark.parametrize("after", [SERVED * 2, SERVED.replace("200 OK", "500 Error") * 5, SERVED * 5])
def test_lines_before_an_init_and_too_few_prove_nothing(tmp_path: Path, after: str) -> None:
    text = after + START if after == SERVED * 5 else START + after
    assert [finding["severity"] for finding in verdict(tmp_path, text)["findings"] if finding["id"] == "JOB001"] == [
        "error"
    ]
