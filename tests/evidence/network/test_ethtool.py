"""What `ethtool` says in a second sample, in floods and with bad values; its readings are rows of a table."""

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of, value
from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.network.ethtool import MAX_COUNTERS, Ethtool

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


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30))
def test_a_bad_value_loses_only_that_value(junk: str) -> None:
    draft = draft_by(Ethtool(), Blob("ethtool.txt", FAST.replace("100000Mb/s", junk).encode()))
    interface = draft.netdev("ens1f0np0")
    assert (value(interface, "carrier"), value(interface, "max_speed_mbps")) == (True, 200000)
    interface = captured(DRIVER.replace("0000:18:00.0", junk))
    assert (value(interface, "driver"), value(interface, "firmware")) == ("mlx5_core", "28.41.1000")
