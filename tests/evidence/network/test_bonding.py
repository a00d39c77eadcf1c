"""/proc/net/bonding: members of a bond with the state that the bond sees."""

from __future__ import annotations

from tests.tables import texts
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.ip_link import Bonding

TEXTS = texts(__file__)
TEXT = TEXTS["text"]


def read(text: str) -> list[dict[str, object]]:
    source = Bonding()
    assert source.recognises(text)
    return [
        {"name": each.name} | {name: cell.value for name, cell in (each.facts | each.counters).items()}
        for each in source.parse(Blob("bond.txt", text.encode())).records
    ]


def test_a_member_has_its_bond_state_and_speed() -> None:
    up, down = read(TEXT)
    assert up == {
        "name": "ens1f0np0", "master": "bond1", "kind": "ether", "operstate": "up", "carrier": True,
        "speed_mbps": 100000, "link_failures": 0,
    }  # fmt: skip
    assert (down["carrier"], down["speed_mbps"], down["link_failures"]) == (False, None, 3)


def test_two_bonds_without_their_commands_are_two() -> None:
    bare = TEXT.partition("\n")[2]
    assert [each["master"] for each in read(bare + bare)] == ["bond", "bond", "bond 2", "bond 2"]
