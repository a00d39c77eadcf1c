"""Ports that come and go, and adapters whose transmit queues stand still, in the words of any system's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud


@pytest.mark.parametrize(
    "text",
    [
        "r8169 0000:03:00.0 eth0: Link is Down\nr8169 0000:03:00.0 eth0: Link is Up - 1Gbps/Full\n"
        "r8169 0000:03:00.0 eth0: Link is Down\nr8169 0000:03:00.0 eth0: Link is Up - 1Gbps/Full\n",
        "cxgb4 0000:04:00.4 enp4s0f4: link down\ncxgb4 0000:04:00.4 enp4s0f4: link up, 40Gbps, full-duplex\n" * 2,
        "%Jun  3 09:12:44:118 2025 leaf7 IFNET/3/PHY_UPDOWN: Physical state on the interface Ten-GigabitEthernet1/0/3"
        " changed to down.\n%Jun  3 09:12:49:118 2025 leaf7 IFNET/3/PHY_UPDOWN: Physical state on the interface"
        " Ten-GigabitEthernet1/0/3 changed to up.\n",
        "%%01IFNET/4/LINK_STATE(l)[21]:The line protocol IP on the interface 100GE1/0/7 has entered the DOWN state.\n"
        "%%01IFNET/4/LINK_STATE(l)[22]:The line protocol IP on the interface 100GE1/0/7 has entered the UP state.\n",
    ],
)
def test_a_port_that_goes_down_and_up_flaps_in_any_systems_words(text: str, tmp_path: Path) -> None:
    assert first_of(tmp_path, text)["id"] == "NIC003"


@pytest.mark.parametrize(
    "line",
    [
        "Apr 16 06:10:00 n3 kernel: e1000e 0000:00:1f.6 eno1: Detected Hardware Unit Hang:",
        "[ 1245.678901] r8169 0000:03:00.0 enp3s0: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5032 ms",
        "Oct  3 10:00:01 n1 kernel: tg3 0000:02:00.0 eno1: transmit timed out, resetting",
        "[  812.101010] bnxt_en 0000:41:00.0 ens1f0np0: TX timeout detected, starting reset task!",
    ],
)
def test_an_adapter_whose_transmit_queue_stands_still_is_faulty_whatever_its_driver(line: str, tmp_path: Path) -> None:
    assert first_of(tmp_path, f"{line}\n")["id"] == "NIC003"


@pytest.mark.parametrize(
    "text",
    [
        "[   12.100000] r8152 2-1:1.0 enx00e04c: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5032 ms\n",
        "[   12.100000] iwlwifi 0000:02:00.0 wlp2s0: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5032 ms\n",
        "[    3.100000] e1000e 0000:00:1f.6 eno1: NIC Link is Up 1000 Mbps Full Duplex, Flow Control: Rx/Tx\n",
    ],
)
def test_a_start_an_empty_port_and_what_is_no_adapter_of_the_node_are_no_fault(text: str, tmp_path: Path) -> None:
    assert not loud(tmp_path, text)
