"""What `ethtool` says in a second sample, in floods and with bad values; its readings are rows of a table."""

from tests.evidence.filled import draft_by, text_of
from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.network.interfaces import MAX_COUNTERS, Ethtool

CAPTURED = Item("ethtool-S-ens1", "ethtool-stats", "commands/x.txt", argv=("ethtool", "-S", "ens1"))
FAST, DRIVER, STATS = (text_of("ethtool", name) for name in ("FAST", "DRIVER", "STATS"))


def captured(text: str, sample: int = 0) -> Entity:
    return draft_by(Ethtool(), Blob("ethtool.txt", text.encode(), CAPTURED), sample).netdev("ens1")


def test_the_second_sample_is_marked() -> None:
    reading = captured(STATS, sample=1).counters["rx_discards_phy"][0]
    assert (reading.value, reading.sample) == (17, 1)


def test_more_counters_than_any_driver_has_are_not_kept() -> None:
    text = "NIC statistics:\n" + "".join(f"     c{number}x: 1\n" for number in range(MAX_COUNTERS + 50))
    assert len(captured(text).counters) == MAX_COUNTERS
