"""/proc/net/bonding: members of a bond with the state that the bond sees."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.interface import Blob
from topodiag.evidence.network.ip_link import Bonding

TEXT = """\
$ cat /proc/net/bonding/bond1
Ethernet Channel Bonding Driver: v5.15.0-91-generic

Bonding Mode: IEEE 802.3ad Dynamic link aggregation
MII Status: up
MII Polling Interval (ms): 100

Slave Interface: ens1f0np0
MII Status: up
Speed: 100000 Mbps
Link Failure Count: 0

Slave Interface: ens1f1np1
MII Status: down
Speed: Unknown
Link Failure Count: 3
"""


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


@given(st.text(max_size=300) | st.text(alphabet="Slave Interface: MII Status: up\n", max_size=300))
def test_any_text_is_read_or_left(text: str) -> None:
    Bonding().recognises(text)
    Bonding().parse(Blob("x", text.encode()))
