"""Lines of NCCL that were cut behind its word are read; nobody else's lines are taken for them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.tables import examples
from topodiag.api import diagnose
from topodiag.evidence.nccl_log.input.wrapped_lines import looks_cut, with_heads

CUT = "INFO NET/IB : No device found.\nINFO NET/Socket : Using [0]eth0:10.0.0.3<0>\nINFO Using network Socket\n"


@examples("line", "whole")
def test_a_line_without_nccls_word_gets_it_back(line: bytes, whole: bytes) -> None:
    assert looks_cut(line)
    assert b"".join(with_heads(iter([line]))) == whole


@examples("text")
def test_other_texts_stay_as_they_are(text: bytes) -> None:
    assert not looks_cut(text)


def test_an_excerpt_without_heads_is_judged(tmp_path: Path) -> None:
    file = tmp_path / "cut.txt"
    file.write_text(CUT)
    said = json.loads(diagnose(str(file)).to_json())
    assert [each["id"] for each in said["findings"]] == ["NET001"]
    assert said["findings"][0]["evidence"][0]["line"] == 3
