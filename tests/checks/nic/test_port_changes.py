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


def test_a_clock_without_a_date_is_as_good(tmp_path: Path) -> None:
    lines = [f"08:1{at}:39.211402 n12 kernel: {OLD_UP if at % 2 else OLD_DOWN}\n" for at in range(4)]
    assert loud(tmp_path, "".join(lines)) == ["NIC003"]


def test_a_bond_and_the_driver_of_its_port_speak_of_one_port(tmp_path: Path) -> None:
    driver = "ixgbe 0000:19:00.0 eno1: NIC Link is {}"
    both = (driver.format("Down"), OLD_DOWN, driver.format("Up 10 Gbps, Flow Control: RX/TX"), OLD_UP)
    assert loud(tmp_path, at_seconds(*both, *both)) == ["NIC003"]
    quiet_driver = (OLD_DOWN, driver.format("Up 10 Gbps, Flow Control: RX/TX"), OLD_UP)
    assert loud(tmp_path, at_seconds(*quiet_driver, *quiet_driver)) == ["NIC003"]


def test_a_port_of_a_bond_that_does_not_come_back_is_down(tmp_path: Path) -> None:
    assert loud(tmp_path, at_seconds(OLD_DOWN, "bond0: now running without any active interface!")) == ["NIC001"]


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


def test_a_lost_carrier_of_which_a_manager_tells_is_not_asked_for(tmp_path: Path) -> None:
    message = "NetworkManager[1201]: device (eno1): state change: activated -> unavailable (reason 'carrier-changed')"
    lines = (message, f"kernel: {OLD_DOWN}", f"kernel: {OLD_UP}")
    text = "".join(f"Jun  3 14:0{at}:11 n7 {line}\n" for at, line in enumerate(lines * 2))
    assert loud(tmp_path, text) == ["NIC003"]


@examples("line")
def test_firmware_that_broke_is_named_in_the_words_of_any_version(tmp_path: Path, line: str) -> None:
    assert loud(tmp_path, at_seconds(f"mlx5_core 0000:65:01.0: {line}")) == ["NIC003"]


@examples("line")
def test_resets_that_were_asked_for_and_notes_are_no_fault(tmp_path: Path, line: str) -> None:
    assert loud(tmp_path, at_seconds(f"mlx5_core 0000:65:01.0: {line}")) == []
