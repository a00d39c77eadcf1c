"""Ports that come and go by the kernel log, in the words of any driver and of a bond; ports that somebody sets down."""

from __future__ import annotations

from pathlib import Path

from tests.pasted import loud
from tests.tables import examples

OLD_DOWN = "bond0: link status definitely down for interface eno1, disabling it"
OLD_UP = "bond0: link status definitely up for interface eno1, 10000 Mbps full duplex"


def at_seconds(*lines: str, start: int = 9000, step: int = 20) -> str:
    return "".join(f"[{start + at * step:5}.000001] {line}\n" for at, line in enumerate(lines))


@examples("down", "up")
def test_a_port_that_comes_and_goes_is_named_whoever_logs_it(tmp_path: Path, down: str, up: str) -> None:
    assert loud(tmp_path, at_seconds(down, up, down, up)) == ["NIC003"]
    assert loud(tmp_path, at_seconds(*(down, up) * 3, step=1)) == ["NIC003"]


@examples("text")
def test_single_changes_and_boots_are_no_fault(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []


@examples("asked")
def test_a_port_that_is_set_down_is_no_fault(tmp_path: Path, asked: str) -> None:
    lines = (asked, f"kernel: {OLD_DOWN}", f"kernel: {OLD_UP}")
    text = "".join(f"Jun  3 14:0{at}:11 n7 {line}\n" for at, line in enumerate(lines * 3))
    assert loud(tmp_path, text) == []
    by_itself = "".join(f"Jun  3 14:0{at}:11 n7 {line}\n" for at, line in enumerate(lines[1:] * 3))
    assert loud(tmp_path, by_itself) == ["NIC003"]


@examples("line")
def test_firmware_that_broke_is_named_in_the_words_of_any_version(tmp_path: Path, line: str) -> None:
    assert loud(tmp_path, at_seconds(f"mlx5_core 0000:65:01.0: {line}")) == ["NIC003"]


@examples("line")
def test_resets_that_were_asked_for_and_notes_are_no_fault(tmp_path: Path, line: str) -> None:
    assert loud(tmp_path, at_seconds(f"mlx5_core 0000:65:01.0: {line}")) == []
