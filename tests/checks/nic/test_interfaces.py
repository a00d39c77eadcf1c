"""Interfaces told alone: a bond that lost a member, one that is down or differs among siblings, and silence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.tables import examples
from topodiag.api import diagnose

UP = "<BROADCAST,MULTICAST,UP,LOWER_UP> mtu {mtu} qdisc mq state UP mode DEFAULT"
DOWN = "<NO-CARRIER,BROADCAST,MULTICAST,UP> mtu {mtu} qdisc mq state DOWN mode DEFAULT"
BOND = "Ethernet Channel Bonding Driver: v5.15\n\nMII Status: up\n"
MEMBER = "\nSlave Interface: {name}\nMII Status: {state}\nSpeed: 100000 Mbps\n"


def found(tmp_path: Path, text: str) -> list[tuple[str, str, str]]:
    file = tmp_path / "ip.txt"
    file.write_text(text)
    said = json.loads(diagnose(str(file)).to_json())
    return [(each["id"], each["severity"], each["message"]) for each in said["findings"]]


def links(rows: Sequence[tuple[str, str, int]]) -> str:
    return "".join(f"{n}: {name}: {words.format(mtu=mtu)}\n" for n, (name, words, mtu) in enumerate(rows, 2))


def test_a_bond_that_lost_a_member_is_found(tmp_path: Path) -> None:
    text = BOND + MEMBER.format(name="ens1f0", state="up") + MEMBER.format(name="ens1f1", state="down")
    assert found(tmp_path, text) == [("NIC001", "warning", "ens1f1 is down in bond, which runs on 1 of 2 members")]


def test_one_interface_that_is_down_among_siblings_is_found(tmp_path: Path) -> None:
    text = links([("ens1np0", UP, 9000), ("ens2np0", DOWN, 9000), ("ens3np0", UP, 9000)])
    assert found(tmp_path, text) == [("NIC001", "warning", "ens2np0 is down, while 2 interfaces named alike are up")]


def test_one_smaller_mtu_among_siblings_is_found(tmp_path: Path) -> None:
    text = links([("ens1np0", UP, 9000), ("ens2np0", UP, 1500), ("ens3np0", UP, 9000)])
    assert found(tmp_path, text) == [
        ("NIC004", "warning", "MTU is 1500 on ens2np0, and 9000 on 2 interfaces named alike")
    ]


@examples("rows")
def test_what_may_be_meant_so_is_no_finding(tmp_path: Path, rows: list[tuple[str, str, int]]) -> None:
    assert found(tmp_path, links(rows)) == []


def test_a_bond_with_all_its_members_is_well(tmp_path: Path) -> None:
    text = BOND + MEMBER.format(name="ens1f0", state="up") + MEMBER.format(name="ens1f1", state="up")
    assert found(tmp_path, text) == []
