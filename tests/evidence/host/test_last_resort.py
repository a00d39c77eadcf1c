"""The reader of last resort: only where no other reader takes a text, never more than a warning of low confidence,
never beside 'no faults'."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from topodiag.api import diagnose
from topodiag.evidence import registry
from topodiag.evidence.intake.looks import looks
from topodiag.model.errors import TopodiagError

FIXTURES = Path(__file__).parents[3] / "fixtures"
LINE = "2024-05-06T08:11:01 node-agent[311]: nvlink 5 on gpu 2 is down\n"


@pytest.mark.parametrize(
    ("line", "check"),
    [
        ("nvlink 5 on gpu 2 is down", "NVL001"),
        ("GPU 4 is not responding", "GPU001"),
        ("gpu check: expected 8 GPUs, found 7", "GPU001"),
        ("GPU 1 has uncorrectable memory errors", "GPU002"),
        ("port Ethernet1/17 is down, last change 3 s ago", "NIC001"),
        ("pcie slot 4 link width below expected", "PCI001"),
        ("PCIe device 0000:3b:00.0 surprise down", "PCI003"),
        ("fabricmanager is not running on tray 4", "NVL005"),
    ],
)
def test_a_line_that_names_part_and_state_is_a_warning_of_that_fault(tmp_path: Path, line: str, check: str) -> None:
    file = tmp_path / "agent.log"
    file.write_text(f"2024-05-06T08:11:00 node-agent[311]: start\nnode-agent[311]: {line}\n")
    said = json.loads(diagnose(str(file)).to_json())
    [finding] = said["findings"]
    assert (finding["id"], finding["severity"], finding["confidence"]) == (check, "warning", "low")
    assert line in finding["message"]
    assert [each["line"] for each in finding["evidence"]] == [2]


def test_a_line_whose_fault_no_check_judges_is_cited_and_makes_no_finding(tmp_path: Path) -> None:
    file = tmp_path / "agent.log"
    file.write_text("node-agent[311]: start\nnode-agent[311]: host gpu-12 is unreachable\n")
    said = json.loads(diagnose(str(file)).to_json())
    assert said["findings"] == []
    [line] = said["unexplained"]
    assert line["text"].startswith("node, 'unreachable': ")
    assert (line["line"], line["harmless"]) == (2, "")


def test_a_text_in_which_nothing_is_wrong_is_of_no_kind(tmp_path: Path) -> None:
    file = tmp_path / "agent.log"
    file.write_text("node-agent[311]: all 8 GPUs answer, 0 errors\n")
    with pytest.raises(TopodiagError, match="unknown file type"):
        diagnose(str(file))


def test_it_is_asked_last() -> None:
    assert registry.LAST_RESORT not in registry.recognise(LINE)
    assert registry.last_resort(LINE) == (registry.LAST_RESORT,)
    assert registry.last_resort("all is well\n") == ()


def test_the_definition_of_a_counter_is_no_fault_of_a_port() -> None:
    told = "Port mlx5_0 port 1: link_downed - Port Training State Machine failed (value=1, delta=1)"
    assert registry.last_resort(f"{told}\n") == ()
    assert registry.last_resort("Port mlx5_0 port 1 is down\n") == (registry.LAST_RESORT,)


def healthy_texts() -> Iterator[tuple[str, bytes]]:
    """Files of the healthy machines and runs, and the texts of the field in which nothing was wrong."""
    for path in sorted(FIXTURES.rglob("*")):
        if path.is_file() and "healthy" in str(path.relative_to(FIXTURES)):
            yield str(path), path.read_bytes()[:65536]
    for path in sorted((FIXTURES / "field").glob("*.json")):
        case = json.loads(path.read_text())
        if not case["first"]:
            yield from ((f"{path.name}:{each['name']}", each["text"].encode()) for each in case["inputs"])


def test_it_takes_no_text_in_which_nothing_is_wrong() -> None:
    texts = list(healthy_texts())
    assert len(texts) > 100
    taken = [name for name, data in texts if registry.LAST_RESORT in looks(data).sources]
    # The agent itself says that a device is missing, of which its authors say that nothing needs it: quoted as open.
    assert taken == ["1435-nvsentinel-issm.json:node-conditions.txt"]
