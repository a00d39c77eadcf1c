"""The page of a job of which RAS alone was asked: it has seen the ranks that answered, and asks for no log setting."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evidence.live.test_ras import HEAD, WARNINGS, status
from tests.files import laid
from tests.printed import drawn
from topodiag.api import diagnose
from topodiag.app.logs import logs
from topodiag.report.job.table import draw_logs


def answer(launched: int = 231, second: int = 50, **changes: int) -> str:
    document: Any = status(8, stamp=f"2026-11-22 08:19:{second}", **changes)  # type: ignore[arg-type]
    for member in document["communicators"][0]["ranks"]:
        member["collective_counts"]["AllReduce"] = launched
    return json.dumps(document, indent=2)


def page(folder: Path, *answers: str) -> str:
    laid(folder, {f"answer{number}.txt": text for number, text in enumerate(answers)})
    return drawn(draw_logs, logs([str(folder)]), width=200)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((answer(231, 10), answer(260, 20)), "8 of 8 ranks answered RAS, their launches go on, and nobody is behind"),
        ((answer(231, 10), answer(231, 20)), "nobody is behind, and nobody launched anything between the answers"),
        ((answer(),), "8 of 8 ranks answered RAS, and nobody is behind in what it shows"),
        ((HEAD.replace("MISMATCH", "OK") + WARNINGS,), "32 of 32 ranks answered RAS"),
    ],
)
def test_ranks_that_answered_are_seen(tmp_path: Path, answers: tuple[str, ...], words: str) -> None:
    text = page(tmp_path, *answers)
    assert words in text
    assert "all of them answered RAS" in text
    assert "NCCL_DEBUG" not in text
    assert "of them seen" not in text
    assert "topodiag ras --with LOG" in text


def test_one_that_does_not_answer_is_not_seen(tmp_path: Path) -> None:
    text = page(tmp_path, answer(231, 10, missing=3), answer(231, 20, missing=3))
    assert "7 of them answered RAS" in text
    assert "rank 3 on 10.0.0.1 does not answer" in text


def test_the_verdict_says_so_and_calls_nobody_healthy(tmp_path: Path) -> None:
    page(tmp_path, answer(231, 10), answer(260, 20))
    verdict = diagnose(str(tmp_path)).verdict
    assert verdict.state.value == "unknown"
    assert verdict.headline == "8 of 8 ranks answered RAS, their launches go on, and nobody is behind"
    assert "RAS 8/8 ranks" in verdict.joined
    assert "log none" in verdict.joined


def test_beside_a_log_the_ranks_are_those_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        "n0:100:100 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1000 commId"
        " 0x3d9f2208e70d8f94 - Init COMPLETE\n"
    )
    assert "1 of them seen" in page(tmp_path, answer())
