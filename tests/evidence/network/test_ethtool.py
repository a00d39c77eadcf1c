"""`ethtool IF`, `ethtool -i IF` and `ethtool -S IF`: what is read, and of whom."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by
from tests.tables import examples, texts
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.network.ethtool import MAX_COUNTERS, Ethtool

TEXTS = texts(__file__)
CAPTURED = Item("ethtool-S-ens1", "ethtool-stats", "commands/x.txt", argv=("ethtool", "-S", "ens1"))


def filled(text: str, item: Item | None = None, sample: int = 0) -> NodeDraft:
    return draft_by(Ethtool(), Blob("ethtool.txt", text.encode(), item), sample)


def values(draft: NodeDraft, name: str) -> dict[str, Any]:
    entity = draft.netdev(name)
    offers = entity.offers | entity.counters
    return {field: offers[0].value for field, offers in offers.items() if offers[0].value is not None}


@examples("text", "argv", "name", "found")
def test_what_is_read_of_an_interface(text: str, argv: list[str] | None, name: str, found: dict[str, Any]) -> None:
    item = Item("ethtool", "ethtool", "commands/x.txt", argv=tuple(argv)) if argv else None
    expected = {key: int(each) if str(each).isdecimal() else each for key, each in found.items()}
    assert values(filled(text.format(**TEXTS), item), name) == expected


@examples("text")
def test_a_speed_that_stands_for_unknown_is_no_speed(text: str) -> None:
    assert "speed_mbps" not in values(filled(TEXTS["fast"].replace("100000Mb/s", text)), "ens1f0np0")


@examples("text")
def test_other_texts_are_not_taken_for_it(text: str) -> None:
    assert not Ethtool().recognises(text)


def test_without_a_name_the_facts_go_to_the_nic_of_the_function() -> None:
    draft = filled(TEXTS["driver"])
    offers = draft.nic(bus_id="0000:18:00.0").offers
    document = {name: offers[name][0].value for name in ("driver", "firmware", "board_id")}
    assert document == {"driver": "mlx5_core", "firmware": "28.41.1000", "board_id": "MT_0000000838"}
    assert list(draft.entities("netdev")) == []


def test_counters_of_an_interface_that_nobody_names_are_reported_and_not_guessed() -> None:
    draft = filled(TEXTS["stats"])
    assert list(draft.entities("netdev")) == []
    assert [missing.why for missing in draft.missing] == ["the output does not name the interface"]


def test_the_second_sample_is_marked() -> None:
    reading = filled(TEXTS["stats"], CAPTURED, sample=1).netdev("ens1").counters["rx_discards_phy"][0]
    assert (reading.value, reading.sample) == (17, 1)


def test_an_empty_line_at_the_end_is_no_counter() -> None:
    assert Ethtool().parse(Blob("ethtool.txt", f"{TEXTS['stats'].rstrip()}\n\n".encode(), CAPTURED)).unread == []


def test_more_counters_than_any_driver_has_are_not_kept() -> None:
    text = "NIC statistics:\n" + "".join(f"     c{number}x: 1\n" for number in range(MAX_COUNTERS + 50))
    assert len(filled(text, CAPTURED).netdev("ens1").counters) == MAX_COUNTERS


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30))
def test_a_bad_value_loses_only_that_value(junk: str) -> None:
    document = values(filled(TEXTS["fast"].replace("100000Mb/s", junk)), "ens1f0np0")
    assert (document["carrier"], document["max_speed_mbps"]) == (True, 200000)
    document = values(filled(TEXTS["driver"].replace("0000:18:00.0", junk), CAPTURED), "ens1")
    assert (document["driver"], document["firmware"]) == ("mlx5_core", "28.41.1000")
