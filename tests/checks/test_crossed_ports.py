"""Ports of InfiniBand that are cabled crosswise to two fabrics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from topodiag.api import diagnose


def devinfo(guid: int, first: str, second: str, layer: str = "", state: str = "PORT_ACTIVE (4)") -> str:
    """What `ibv_devinfo -v` prints of a device with two ports in these subnets."""
    ports = "".join(
        f"\t\tport:\t{number}\n\t\t\tstate:\t\t\t{state}\n\t\t\tphys_state:\t\tLINK_UP (5)\n{layer}"
        f"\t\t\tGID[  0]:\t\tfe80:0000:0000:{subnet}:0008:f104:0396:{guid + number:04x}\n"
        for number, subnet in ((1, first), (2, second))
    )
    return f"hca_id: mthca0\n\tfw_ver:\t\t\t\t4.7.0\n\tnode_guid:\t\t\t0008:f104:0396:{guid:04x}\n{ports}"


def messages(folder: Path, texts: Sequence[str]) -> list[str]:
    for number, text in enumerate(texts, 1):
        (folder / f"node{number}.txt").write_text(text)
    made = json.loads(diagnose(str(folder)).to_json())
    return [each["message"] for each in made["findings"] if each["id"] == "NET004"]


def test_a_port_in_the_subnet_of_the_other_nodes_other_port(tmp_path: Path) -> None:
    told = messages(tmp_path, [devinfo(0x10, "0001", "0000"), devinfo(0x20, "0000", "0001")])
    assert told == ["mthca0:1 of node2 is in the subnet of mthca0:2 of node1: the ports are crossed"]


def test_of_several_nodes_the_one_that_is_not_as_most_is_named(tmp_path: Path) -> None:
    texts = [devinfo(0x10, "0001", "0000"), devinfo(0x20, "0000", "0001"), devinfo(0x30, "0000", "0001")]
    assert [each.split()[2] for each in messages(tmp_path, texts)] == ["node1"]


@pytest.mark.parametrize(
    "texts",
    [
        [devinfo(0x10, "0000", "0001"), devinfo(0x20, "0000", "0001")],  # a rail for each port
        [devinfo(0x10, "0000", "0000"), devinfo(0x20, "0000", "0000")],
        [devinfo(0x10, "0000", "0001"), devinfo(0x20, "0003", "0002")],  # of two clusters
        [devinfo(0x10, "0001", "0000")],
        [devinfo(0x10, "0001", "0000", state="PORT_DOWN (1)"), devinfo(0x20, "0000", "0001")],
        [
            devinfo(0x10, "0001", "0000", "\t\t\tlink_layer:\t\tEthernet\n"),
            devinfo(0x20, "0000", "0001", "\t\t\tlink_layer:\t\tEthernet\n"),
        ],
    ],
)
def test_ports_that_are_not_crossed(tmp_path: Path, texts: list[str]) -> None:
    assert messages(tmp_path, texts) == []
