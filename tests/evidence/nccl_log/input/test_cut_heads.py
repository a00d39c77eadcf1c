"""Lines of NCCL that were cut behind its word are read; nobody else's lines are taken for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from topodiag.api import diagnose
from topodiag.evidence.nccl_log.input.wrapped_lines import looks_cut, with_heads

CUT = "INFO NET/IB : No device found.\nINFO NET/Socket : Using [0]eth0:10.0.0.3<0>\nINFO Using network Socket\n"


@pytest.mark.parametrize(
    ("line", "whole"),
    [
        (b"INFO NET/IB : No device found.", b"NCCL INFO NET/IB : No device found."),
        (b"CL INFO Using network Socket", b"NCCL INFO Using network Socket"),
        (b"[0] INFO Bootstrap : Using eth0:10.0.0.3<0>", b"NCCL INFO Bootstrap : Using eth0:10.0.0.3<0>"),
        (b"WARN NET/IB : No device found.", b"NCCL WARN NET/IB : No device found."),
        (b"Channel 00/0 : 0[0] -> 8[0] via NET/IB/0", b"NCCL INFO Channel 00/0 : 0[0] -> 8[0] via NET/IB/0"),
    ],
)
def test_a_line_without_nccls_word_gets_it_back(line: bytes, whole: bytes) -> None:
    assert looks_cut(line)
    assert b"".join(with_heads(iter([line]))) == whole


@pytest.mark.parametrize(
    "text",
    [
        b"n1:1:1 [0] NCCL INFO NET/IB : No device found.\nINFO Using network Socket\n", b"INFO server started\n",
        b"Channel 5 : 2.4 GHz\n", b"NET/IB : Got completion from peer with error 5\n",
        b"using network Socket\n", b"2024 INFO app Using network Socket\n", b"",
    ],
)  # fmt: skip
def test_other_texts_stay_as_they_are(text: bytes) -> None:
    assert not looks_cut(text)


def test_an_excerpt_without_heads_is_judged(tmp_path: Path) -> None:
    file = tmp_path / "cut.txt"
    file.write_text(CUT)
    said = json.loads(diagnose(str(file)).to_json())
    assert [each["id"] for each in said["findings"]] == ["NET001"]
    assert said["findings"][0]["evidence"][0]["line"] == 3
