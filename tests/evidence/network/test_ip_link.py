"""Interfaces as `ip` and `ifconfig` show them: state, carrier, MTU, bond, errors."""

from __future__ import annotations

import pytest

from tests.evidence.filled import draft_by, values
from tests.tables import texts
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.ip_link import IpLink

TEXTS = texts(__file__)
LINKS = TEXTS["links"]
BRIEF = """\
lo               UNKNOWN        00:00:00:00:00:00 <LOOPBACK,UP,LOWER_UP>
ens1np0          UP             b8:ce:f6:11:22:34 <BROADCAST,MULTICAST,UP,LOWER_UP>
ens2np0          DOWN           b8:ce:f6:11:22:35 <NO-CARRIER,BROADCAST,MULTICAST,UP>
"""
OLD = "ens2np0: flags=4099<UP,BROADCAST,MULTICAST>  mtu 1500\n        ether b8:ce:f6:11:22:35  txqueuelen 1000\n"


def read(text: str) -> dict[str, dict[str, object]]:
    source = IpLink()
    assert source.recognises(text)
    draft = draft_by(source, Blob("ip.txt", text.encode()))
    return {str(entity.keys["name"]): values(entity) for entity in draft.entities("netdev")}


def test_an_interface_has_its_state_mtu_bond_and_counters() -> None:
    table = read(LINKS)
    assert table["ens1np0"] == {
        "carrier": True, "mtu": 9000, "operstate": "up", "master": "bond0", "kind": "ether", "rx_bytes": 1024,
        "rx_packets": 12, "rx_errors": 3, "rx_dropped": 0, "tx_bytes": 2048, "tx_packets": 24, "tx_errors": 0,
        "tx_dropped": 1,
    }  # fmt: skip
    assert table["ens2np0"] == {"carrier": False, "mtu": 1500, "operstate": "down"}
    assert table["lo"]["kind"] == "loopback"


def test_the_carrier_of_an_interface_that_is_switched_off_is_not_known() -> None:
    assert "carrier" not in read(LINKS)["ib0"]


@pytest.mark.parametrize("text", [BRIEF, OLD], ids=["ip -br", "ifconfig"])
def test_other_forms_tell_the_carrier(text: str) -> None:
    assert read(text)["ens2np0"]["carrier"] is False


ADDR = TEXTS["addr"]
ONE_LINE = """\
2: eth0    inet 10.24.6.50/24 brd 10.24.6.255 scope global eth0\\       valid_lft forever preferred_lft forever
2: eth0    inet 10.24.6.99/32 scope global secondary eth0\\       valid_lft forever preferred_lft forever
2: eth0    inet6 fe80::bace:f6ff:fe11:2234/64 scope link \\       valid_lft forever preferred_lft forever
"""
BRIEF_ADDR = """\
lo               UNKNOWN        127.0.0.1/8 ::1/128
eth0             UP             10.24.6.50/24 10.24.6.99/32 fe80::bace:f6ff:fe11:2234/64
"""
JSON = (
    '[{},{"ifindex":2,"ifname":"eth0","flags":["BROADCAST","UP","LOWER_UP"],"mtu":9000,"master":"bond0","operstate":"UP",'
    '"link_type":"ether","address":"b8:ce:f6:11:22:34","addr_info":[{"family":"inet","local":"10.24.6.50",'
    '"prefixlen":24},{"family":"inet","local":"10.24.6.99"},{"local":"fe80::bace:f6ff:fe11:2234"},{"local":7}]}]'
)
NEW_IFCONFIG = TEXTS["new_ifconfig"]


@pytest.mark.parametrize("text", [ADDR, ONE_LINE, BRIEF_ADDR, JSON, NEW_IFCONFIG])
def test_every_form_tells_the_addresses(text: str) -> None:
    assert read(text)["eth0"]["addresses"] == ("10.24.6.50", "10.24.6.99", "fe80::bace:f6ff:fe11:2234")


def test_json_tells_what_the_text_tells() -> None:
    eth_ = read(JSON)["eth0"]
    assert (eth_["carrier"], eth_["mtu"], eth_["operstate"], eth_["master"], eth_["kind"]) == (
        True, 9000, "up", "bond0", "ether",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["[", "[1]", '[{"ifname": 7}]', '[{"ifname":"eth0","addr_info":{},"flags":3}]'])
def test_json_of_another_form_costs_itself(text: str) -> None:
    draft = draft_by(IpLink(), Blob("x", text.encode()))
    assert all("addresses" not in entity.offers for entity in draft.entities("netdev"))


@pytest.mark.parametrize("text", ["", "eth0 is up\n", "GPU0 UP <none>\n", "4: a line of a list\n"])
def test_other_texts_are_left(text: str) -> None:
    assert not IpLink().recognises(text)


def test_a_prompt_in_brackets_is_no_json() -> None:
    text = "[root@gn07 ~]# ip link\n2: ens1f0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP\n"
    assert list(read(text)) == ["ens1f0"]
