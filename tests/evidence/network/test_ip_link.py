"""Interfaces as `ip` and `ifconfig` show them: state, carrier, MTU, bond, errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.interface import Blob
from topodiag.evidence.network.ip_link import IpLink

LINKS = """\
$ ip -s -d link
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
3: ens1np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP mode DEFAULT qlen 1000
    link/ether b8:ce:f6:11:22:34 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 9978
    RX:  bytes packets errors dropped  missed   mcast
          1024      12      3       0       0       0
    TX:  bytes packets errors dropped carrier collsns
          2048      24      0       1       0       0
4: ens2np0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state DOWN mode DEFAULT group default qlen 1000
5: ib0: <BROADCAST,MULTICAST> mtu 4092 qdisc mq state DOWN mode DEFAULT group default qlen 256
    link/infiniband 00:00:10:29:fe:80 brd 00:ff:ff:ff:ff:12
"""
BRIEF = """\
lo               UNKNOWN        00:00:00:00:00:00 <LOOPBACK,UP,LOWER_UP>
ens1np0          UP             b8:ce:f6:11:22:34 <BROADCAST,MULTICAST,UP,LOWER_UP>
ens2np0          DOWN           b8:ce:f6:11:22:35 <NO-CARRIER,BROADCAST,MULTICAST,UP>
"""
OLD = "ens2np0: flags=4099<UP,BROADCAST,MULTICAST>  mtu 1500\n        ether b8:ce:f6:11:22:35  txqueuelen 1000\n"


def read(text: str) -> dict[str, dict[str, object]]:
    source = IpLink()
    assert source.recognises(text)
    return {
        each.name: {name: cell.value for name, cell in (each.facts | each.counters).items()}
        for each in source.parse(Blob("ip.txt", text.encode())).records
    }


def test_an_interface_has_its_state_mtu_bond_and_counters() -> None:
    made = read(LINKS)
    assert made["ens1np0"] == {
        "carrier": True, "mtu": 9000, "operstate": "up", "master": "bond0", "kind": "ether", "rx_bytes": 1024,
        "rx_packets": 12, "rx_errors": 3, "rx_dropped": 0, "tx_bytes": 2048, "tx_packets": 24, "tx_errors": 0,
        "tx_dropped": 1,
    }  # fmt: skip
    assert made["ens2np0"] == {"carrier": False, "mtu": 1500, "operstate": "down"}
    assert made["lo"]["kind"] == "loopback"


def test_the_carrier_of_an_interface_that_is_switched_off_is_not_known() -> None:
    assert "carrier" not in read(LINKS)["ib0"]


@pytest.mark.parametrize("text", [BRIEF, OLD], ids=["ip -br", "ifconfig"])
def test_other_forms_tell_the_carrier(text: str) -> None:
    assert read(text)["ens2np0"]["carrier"] is False


@pytest.mark.parametrize("text", ["", "eth0 is up\n", "GPU0 UP <none>\n", "4: a line of a list\n"])
def test_other_texts_are_left(text: str) -> None:
    assert not IpLink().recognises(text)


@given(st.text(max_size=300) | st.text(alphabet="1: eth0<UP,>mtu 9 RX:\n", max_size=300))
def test_any_text_is_read_or_left(text: str) -> None:
    IpLink().recognises(text)
    IpLink().parse(Blob("x", text.encode()))
