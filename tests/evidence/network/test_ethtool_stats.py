"""`ethtool -S`: the driver's counters, and whose they are."""

from __future__ import annotations

from tests.evidence.filled import draft_by
from tests.tables import texts
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Item
from topodiag.evidence.network.ethtool import MAX_COUNTERS, EthtoolStats

TEXTS = texts(__file__)
STATS = TEXTS["stats"]
CAPTURED = Item("ethtool-S-ens1", "ethtool-stats", "commands/x.txt", argv=("ethtool", "-S", "ens1"))


def filled(text: str, item: Item | None = CAPTURED, sample: int = 0) -> NodeDraft:
    return draft_by(EthtoolStats(), Blob("stats.txt", text.encode(), item), sample)


def counters(text: str, name: str = "ens1", item: Item | None = CAPTURED) -> dict[str, object]:
    return {key: offers[0].value for key, offers in filled(text, item).netdev(name).counters.items()}


def test_counters_keep_the_drivers_names() -> None:
    found = counters(STATS)
    assert (found["rx_crc_errors_phy"], found["rx_discards_phy"], found["rx_crc_errors.nic"]) == (4, 17, 12)
    assert found["rx_packets"] == 2**64 - 1


def test_of_single_queues_only_losses_are_kept() -> None:
    found = counters(STATS)
    assert found["rx0_oversize_pkts_sw_drop"] == 6
    assert found["queue_3_rx_bad_desc_num"] == 8
    assert found["[0]: rx_discards"] == 11
    assert found.keys().isdisjoint({"rx0_packets", "queue_3_tx_cnt", "[0]: rx_ucast_packets"})


def test_a_priority_is_no_queue() -> None:
    assert counters("NIC statistics:\n     rx_prio3_pause: 2\n") == {"rx_prio3_pause": 2}


def test_the_second_sample_is_marked() -> None:
    reading = filled(STATS, sample=1).netdev("ens1").counters["rx_discards_phy"][0]
    assert (reading.value, reading.sample) == (17, 1)


def test_the_echoed_command_of_a_paste_names_the_interface() -> None:
    text = f"$ ethtool -S eth0\n{STATS}$ ethtool -S eth1\nNIC statistics:\n     rx_discards_phy: 99\n"
    assert counters(text, "eth0", None)["rx_discards_phy"] == 17
    assert counters(text, "eth1", None) == {"rx_discards_phy": 99}


def test_counters_of_an_interface_that_nobody_names_are_reported_and_not_guessed() -> None:
    draft = filled(STATS, None)
    assert list(draft.entities("netdev")) == []
    assert [missing.why for missing in draft.missing] == ["the output does not name the interface"]


def test_a_value_that_is_no_count_loses_only_itself() -> None:
    found = counters(STATS.replace("rx_discards_phy: 17", "rx_discards_phy: -3"))
    assert ("rx_discards_phy" in found, found["rx_crc_errors_phy"]) == (False, 4)


def test_more_counters_than_any_driver_has_are_not_kept() -> None:
    text = "NIC statistics:\n" + "".join(f"     c{number}x: 1\n" for number in range(MAX_COUNTERS + 50))
    assert len(counters(text)) == MAX_COUNTERS


def test_only_its_own_form_is_recognised() -> None:
    assert EthtoolStats().recognises("$ ethtool -S ens1\n" + STATS)
    assert not EthtoolStats().recognises("Settings for eth0:\n\tSpeed: 100000Mb/s\n")
