"""`/sys/class/net` and the route tables from a tree file."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by
from tests.tables import texts
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.sys_net import SysNet
from topodiag.model.devices import NetDev

N = "sys/class/net"
HEAD4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT"
ZEROS = "0" * 32
TEXTS = texts(__file__)
WHOLE = TEXTS["whole"]


def filled(text: str, sample: int = 0) -> NodeDraft:
    return draft_by(SysNet(), Blob("net.tree", text.encode()), sample)


def value(name: str, field: str, text: str = WHOLE) -> object:
    return filled(text).netdev(name).offers[field][0].value


def test_an_interface_is_read_whole() -> None:
    entity = filled(WHOLE).netdev("ens1f0")
    assert {name: offers[0].value for name, offers in entity.offers.items()} == {
        "bus_id": "0000:18:00.0",
        "driver": "mlx5_core",
        "master": "bond0",
        "operstate": "up",
        "carrier": True,
        "speed_mbps": 200000,
        "mtu": 9000,
        "kind": "ether",
        "default_route": False,
    }


def test_every_offer_is_a_field_of_the_model() -> None:
    fields = {field.name for field in dataclasses.fields(NetDev)}
    for entity in filled(WHOLE).entities("netdev"):
        assert entity.offers.keys() <= fields


def test_counters_have_the_kernels_names_and_fail_alone() -> None:
    counters = filled(WHOLE).netdev("ens1f0").counters
    assert {name: offers[0].value for name, offers in counters.items()} == {
        "carrier_changes": 3,
        "carrier_down_count": 1,
        "rx_crc_errors": 12,
    }


def test_carrier_and_speed_of_an_interface_that_is_down_are_unknown_with_why() -> None:
    offers = filled(WHOLE).netdev("ens2").offers
    for name in ("carrier", "speed_mbps"):
        assert (offers[name][0].value, offers[name][0].why) == (None, "EINVAL Invalid argument")


@pytest.mark.parametrize("text", ["-1", "4294967295", "65535", "0"])
def test_a_speed_that_stands_for_unknown_is_no_speed(text: str) -> None:
    assert value("eth9", "speed_mbps", f"= {N}/eth9/speed\t{text}\n") is None


def test_minus_one_is_understood_and_no_unread_line() -> None:
    assert SysNet().parse(Blob("n", WHOLE.encode())).unread == []


def test_a_speed_of_minus_one_says_whose_word_it_is() -> None:
    assert filled(WHOLE).netdev("eth0").offers["speed_mbps"][0].why == "the kernel gives none (-1)"


def test_operstate_unknown_is_a_value_of_the_kernel() -> None:
    assert value("eth0", "operstate") == "unknown"


def test_a_virtio_interface_has_the_function_above_it() -> None:
    assert value("eth0", "bus_id") == "0000:00:03.0"


def test_kinds_are_named() -> None:
    assert [value(name, "kind") for name in ("ens1f0", "ibs1", "lo")] == ["ether", "infiniband", "loopback"]
    assert value("tun0", "kind", f"= {N}/tun0/type\t65534\n") == "65534"


def test_default_routes_of_both_protocols_count() -> None:
    assert [value(name, "default_route") for name in ("eth0", "bond0", "ens1f0", "lo")] == [True, True, False, False]


def test_a_default_route_that_is_down_or_rejects_is_none() -> None:
    for flags in ("0002", "0201", "zz"):
        assert value("eth0", "default_route", WHOLE.replace("\t0003\t", f"\t{flags}\t")) is False


def test_without_a_route_table_nothing_is_said_of_default_routes() -> None:
    text = "".join(line for line in WHOLE.splitlines(keepends=True) if "_route" not in line and "/route" not in line)
    assert "default_route" not in filled(text).netdev("eth0").offers


def test_an_unreadable_route_table_leaves_the_default_route_unknown() -> None:
    text = f"= {N}/eth0/mtu\t1500\n! proc/net/route\tEACCES Permission denied\n"
    offer = filled(text).netdev("eth0").offers["default_route"][0]
    assert (offer.value, offer.why) == (None, "EACCES Permission denied")


def test_the_bonding_driver_names_members_that_sysfs_did_not() -> None:
    assert value("ens2", "master") == "bond0"


def test_bonding_masters_is_no_interface() -> None:
    assert "bonding_masters" not in {entity.keys["name"] for entity in filled(WHOLE).entities("netdev")}


def test_only_trees_with_interfaces_are_recognised() -> None:
    assert SysNet().recognises(WHOLE)
    assert not SysNet().recognises("= sys/class/infiniband/mlx5_0/fw_ver\t1\n")


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\\"), max_size=30))
def test_a_bad_value_loses_only_that_value(junk: str) -> None:
    offers = filled(WHOLE.replace("speed\t200000", f"speed\t{junk}")).netdev("ens1f0").offers
    assert (offers["mtu"][0].value, offers["carrier"][0].value, offers["master"][0].value) == (9000, True, "bond0")


def test_a_capture_has_the_addresses_of_its_interfaces_by_the_routes() -> None:
    text = WHOLE + (
        "= proc/net/fib_trie\t|-- 192.168.0.7 /32 host LOCAL\n"
        "= proc/net/fib_trie\t|-- 34.1.2.3 /32 host LOCAL\n"
        "= proc/net/fib_trie\t|-- 999.1.2.3 /32 host LOCAL\n"
        "= proc/net/if_inet6\tfd000000000000000000000000000002 02 40 00 82     ens1f0\n"
        "= proc/net/if_inet6\tfe800000000000000042acfffe110002 02 40 20 80     ens1f0\n"
    )
    assert value("ens1f0", "addresses", text) == ("192.168.0.7", "fd00::2")
    assert value("eth0", "addresses", text) == ("34.1.2.3",), "beyond all networks it is met by the default route"
    assert "addresses" not in filled(text).netdev("ens2").offers
