"""The reader of last resort: only where no other reader takes a text, never a finding, never beside 'no faults'."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from topodiag.api import diagnose
from topodiag.evidence import registry
from topodiag.model.errors import TopodiagError

LINE = "2024-05-06T08:11:01 node-agent[311]: nvlink 5 on gpu 2 is down\n"


def test_a_line_of_an_unknown_tool_is_cited_and_makes_no_finding(tmp_path: Path) -> None:
    file = tmp_path / "agent.log"
    file.write_text(f"2024-05-06T08:11:00 node-agent[311]: start\n{LINE}")
    said = json.loads(diagnose(str(file)).to_json())
    assert said["findings"] == []
    [line] = said["unexplained"]
    assert line["text"].startswith("NVLink, 'is down': ")
    assert (line["line"], line["harmless"]) == (2, "")


def test_a_text_in_which_nothing_is_wrong_is_of_no_kind(tmp_path: Path) -> None:
    file = tmp_path / "agent.log"
    file.write_text("node-agent[311]: all 8 GPUs answer, 0 errors, 18 nvlinks up\n")
    with pytest.raises(TopodiagError, match="of no kind"):
        diagnose(str(file))


def test_it_is_asked_last() -> None:
    assert registry.LAST_RESORT not in registry.recognise(LINE)
    assert registry.last_resort(LINE) == (registry.LAST_RESORT,)
    assert registry.last_resort("all is well\n") == ()
