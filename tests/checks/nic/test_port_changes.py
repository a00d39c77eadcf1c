"""Ports that come and go by the kernel log, in the words of any driver and of a bond; ports that somebody sets down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud

OLD_DOWN = "bond0: link status definitely down for interface eno1, disabling it"
OLD_UP = "bond0: link status definitely up for interface eno1, 10000 Mbps full duplex"
NEW_DOWN = "bond1: (slave ens3f0): link status definitely down, disabling slave"
NEW_UP = "bond1: (slave ens3f0): link status definitely up, 25000 Mbps full duplex"


def at_seconds(*lines: str, start: int = 9000, step: int = 20) -> str:
    return "".join(f"[{start + at * step:5}.000001] {line}\n" for at, line in enumerate(lines))


@pytest.mark.parametrize(
    ("down", "up"),
    [
        (OLD_DOWN, OLD_UP),
        (NEW_DOWN, NEW_UP),
        ("ixgbe 0000:19:00.0 eno1: NIC Link is Down", "ixgbe 0000:19:00.0 eno1: NIC Link is Up 10 Gbps, Flow Control:"),
        ("i40e 0000:3b:00.1 ens1f1: NIC Link is Down", "i40e 0000:3b:00.1 ens1f1: NIC Link is Up, 25 Gbps Full Duplex"),
        ("ice 0000:5e:00.0 ens5f0: NIC Link is Down", "ice 0000:5e:00.0 ens5f0: NIC Link is up 100 Gbps Full Duplex"),
        ("tg3 0000:02:00.0 eno1: Link is down", "tg3 0000:02:00.0 eno1: Link is up at 1000 Mbps, full duplex"),
        ("e1000e: eth0 NIC Link is Down", "e1000e: eth0 NIC Link is Up 1000 Mbps Full Duplex"),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize(
    "text",
    [
        at_seconds(OLD_DOWN, OLD_UP, OLD_DOWN, OLD_UP, start=20, step=9),  # while the machine boots
        at_seconds("igb 0000:04:00.0 eno1: igb: eno1 NIC Link is Down"),  # a cable is pulled
        at_seconds("igb 0000:04:00.0 eno1: igb: eno1 NIC Link is Down",
                   "igb 0000:04:00.0 eno1: igb: eno1 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX"),
        at_seconds(*("i40e 0000:3b:00.1 ens1f1: NIC Link is Down",
                     "i40e 0000:3b:00.1 ens1f1: NIC Link is Up, 25 Gbps Full Duplex") * 3, step=90000),
        at_seconds(*("ixgbe 0000:19:00.0 eno1: NIC Link is Up 10 Gbps, Flow Control: RX/TX",) * 5),
        at_seconds(*("usb 1-1: cdc_ether usb0: Link is Down", "usb 1-1: cdc_ether usb0: Link is Up") * 3),
    ],
)  # fmt: skip
def test_single_changes_and_boots_are_no_fault(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []


@pytest.mark.parametrize(
    "asked",
    [
        "sudo: ops : TTY=pts/0 ; PWD=/root ; USER=root ; COMMAND=/usr/sbin/ip link set eno1 down",
        "NetworkManager[1201]: <info> [1.2] device (eno1): state change: activated -> deactivating"
        " (reason 'user-requested', sys-iface-state: 'managed')",
        "kernel: bond0: Releasing active interface eno1",
        "kernel: bond0: (slave eno1): Releasing backup interface",
    ],
)
def test_a_port_that_is_set_down_is_no_fault(tmp_path: Path, asked: str) -> None:
    lines = (asked, f"kernel: {OLD_DOWN}", f"kernel: {OLD_UP}")
    text = "".join(f"Jun  3 14:0{at}:11 n7 {line}\n" for at, line in enumerate(lines * 3))
    assert loud(tmp_path, text) == []
    by_itself = "".join(f"Jun  3 14:0{at}:11 n7 {line}\n" for at, line in enumerate(lines[1:] * 3))
    assert loud(tmp_path, by_itself) == ["NIC003"]


def test_a_lost_carrier_of_which_a_manager_tells_is_not_asked_for(tmp_path: Path) -> None:
    told = "NetworkManager[1201]: device (eno1): state change: activated -> unavailable (reason 'carrier-changed')"
    lines = (told, f"kernel: {OLD_DOWN}", f"kernel: {OLD_UP}")
    text = "".join(f"Jun  3 14:0{at}:11 n7 {line}\n" for at, line in enumerate(lines * 2))
    assert loud(tmp_path, text) == ["NIC003"]


@pytest.mark.parametrize(
    "line",
    [
        "print_health_info:429:(pid 0): synd 0x1: firmware internal error",
        "print_health_info:424:(pid 0): synd 0x8: unrecoverable hardware error",
        "print_health_info:424:(pid 0): synd 0x3: irisc not responding",
        "print_health_info:425:(pid 0): Health issue observed, firmware internal error, severity(3) ERROR:",
        "mlx5_fw_fatal_reporter_err_work:663:(pid 1120): health recovery failed",
        "mlx5_health_try_recover:335:(pid 1120): health recovery flow aborted, PCI reads still not working",
    ],
)
def test_firmware_that_broke_is_named_in_the_words_of_any_version(tmp_path: Path, line: str) -> None:
    assert loud(tmp_path, at_seconds(f"mlx5_core 0000:65:01.0: {line}")) == ["NIC003"]


@pytest.mark.parametrize(
    "line",
    [
        "print_health_info:429:(pid 0): synd 0x0: unrecognized error",
        "print_health_info:425:(pid 0): Health issue observed, PCI data poisoned, severity(6) INFO:",
        "mlx5_error_sw_reset:231:(pid 1120): start",
        "mlx5_health_try_recover:335:(pid 1120): health recovery succeeded",
        "mlx5_fw_reset_set_reset_sync_ack:303:(pid 9): PCI Sync FW Update Reset Ack",
    ],
)
def test_resets_that_were_asked_for_and_notes_are_no_fault(tmp_path: Path, line: str) -> None:
    assert loud(tmp_path, at_seconds(f"mlx5_core 0000:65:01.0: {line}")) == []
