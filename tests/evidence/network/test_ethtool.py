"""`ethtool IF`: speed, link, and the fastest mode."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by
from tests.tables import texts
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.ethtool import Ethtool

TEXTS = texts(__file__)
FAST = TEXTS["fast"]
DARK = TEXTS["dark"]


def values(text: str, name: str) -> dict[str, object]:
    draft = draft_by(Ethtool(), Blob("ethtool.txt", text.encode()))
    return {field: offers[0].value for field, offers in draft.netdev(name).offers.items()}


def test_speed_link_and_the_fastest_supported_mode() -> None:
    assert values(FAST, "ens1f0np0") == {"speed_mbps": 100000, "max_speed_mbps": 200000, "carrier": True}


def test_advertised_modes_do_not_count_as_supported() -> None:
    assert values(FAST.replace("400000baseCR8", "800000baseCR8"), "ens1f0np0")["max_speed_mbps"] == 200000


def test_an_unknown_speed_is_no_speed_and_a_reason_after_no_is_read() -> None:
    assert values(DARK, "ens2") == {"speed_mbps": None, "carrier": False}


def test_several_interfaces_in_one_paste_are_told_apart() -> None:
    both = FAST + "\n" + DARK
    assert (values(both, "ens1f0np0")["carrier"], values(both, "ens2")["carrier"]) == (True, False)


def test_what_the_driver_refuses_is_left_with_its_reason() -> None:
    text = "Settings for eth0:\nCannot get device settings: Operation not supported\n\tLink detected: yes\n"
    parsed = Ethtool().parse(Blob("e", text.encode()))
    assert [left.why for left in parsed.unread] == ["the driver does not answer this"]
    assert values(text, "eth0") == {"carrier": True}


@pytest.mark.parametrize("text", ["4294967295Mb/s", "65535Mb/s", "-1", "fast"])
def test_a_speed_that_stands_for_unknown_is_no_speed(text: str) -> None:
    assert values(FAST.replace("100000Mb/s", text), "ens1f0np0")["speed_mbps"] is None


def test_only_its_own_form_is_recognised() -> None:
    assert Ethtool().recognises("# ethtool ens1f0np0\n" + FAST)
    assert not Ethtool().recognises("NIC statistics:\n     rx_packets: 1\n")
    assert not Ethtool().recognises("driver: mlx5_core\nfirmware-version: 1\nbus-info: 0000:18:00.0\n")
    assert not Ethtool().recognises("Settings for the cluster: see below\n")


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30))
def test_a_bad_value_loses_only_that_value(junk: str) -> None:
    found = values(FAST.replace("100000Mb/s", junk), "ens1f0np0")
    assert (found["carrier"], found["max_speed_mbps"]) == (True, 200000)
