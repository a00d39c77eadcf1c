"""`/sys/class/infiniband` from a tree file: identity, ports, counters, and what the kernel refuses."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evidence.filled import draft_by
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.sys_infiniband import SysInfiniband
from topodiag.model.devices import Nic, NicPort

I0 = "sys/class/infiniband/mlx5_0"
R1 = "sys/class/infiniband/mlx5_1"
UP = "../../devices/pci0000:15/0000:15:01.0"


def tree(*lines: tuple[str, str, str]) -> str:
    return "".join(f"{op} {path}\t{text}\n" for op, path, text in lines)


INFINIBAND = (
    ("d", "sys/class/infiniband", ""),
    (">", I0, f"{UP}/0000:18:00.0/infiniband/mlx5_0"),
    (">", f"{I0}/device", "../../../0000:18:00.0"),
    ("=", f"{I0}/fw_ver", "28.41.1000"),
    ("=", f"{I0}/hca_type", "MT4129"),
    ("=", f"{I0}/board_id", "MT_0000000838"),
    ("=", f"{I0}/node_guid", "a088:c203:0055:1234"),
    ("=", f"{I0}/node_type", "1: CA"),
    ("=", f"{I0}/device/numa_node", "0"),
    ("d", f"{I0}/device/net/ibs18", ""),
    ("=", f"{I0}/ports/1/state", "4: ACTIVE"),
    ("=", f"{I0}/ports/1/phys_state", "5: LinkUp"),
    ("=", f"{I0}/ports/1/rate", "400 Gb/sec (4X NDR)"),
    ("=", f"{I0}/ports/1/link_layer", "InfiniBand"),
    ("=", f"{I0}/ports/1/lid", "0x1a2"),
    ("=", f"{I0}/ports/1/sm_lid", "0x1"),
    ("=", f"{I0}/ports/1/cap_mask", "0xa751e848"),
    ("=", f"{I0}/ports/1/gids/0", "fe80:0000:0000:0000:a088:c203:0055:1234"),
    ("=", f"{I0}/ports/1/gid_attrs/types/0", "IB/RoCE v1"),
    ("!", f"{I0}/ports/1/gid_attrs/ndevs/0", "EINVAL Invalid argument"),
    ("=", f"{I0}/ports/1/counters/symbol_error", "3"),
    ("!", f"{I0}/ports/1/counters/link_downed", "EINVAL Invalid argument"),
    ("=", f"{I0}/ports/1/counters/VL15_dropped", "N/A (no PMA)"),
    ("=", f"{I0}/ports/1/hw_counters/out_of_sequence", "7"),
    ("=", f"{I0}/ports/1/hw_counters/lifespan", "10"),
)
ROCE = (
    (">", f"{R1}/device", "../../../0000:29:00.0"),
    ("d", f"{R1}/device/net/ens1f0np0", ""),
    ("d", f"{R1}/device/net/ens1f0np0_0", ""),
    ("=", f"{R1}/device/numa_node", "-1"),
    ("=", f"{R1}/node_guid", "0000:0000:0000:0000"),
    ("=", f"{R1}/ports/1/state", "1: DOWN"),
    ("=", f"{R1}/ports/1/phys_state", "3: Disabled"),
    ("=", f"{R1}/ports/1/rate", "40 Gb/sec (4X QDR)"),
    ("=", f"{R1}/ports/1/link_layer", "Ethernet"),
    ("=", f"{R1}/ports/1/gids/0", "fe80:0000:0000:0000:0ac0:ebff:feda:1cfb"),
    ("=", f"{R1}/ports/1/gid_attrs/types/0", "IB/RoCE v1"),
    ("=", f"{R1}/ports/1/gid_attrs/ndevs/0", "bond0"),
    ("=", f"{R1}/ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:c633:6406"),
    ("=", f"{R1}/ports/1/gid_attrs/types/3", "RoCE v2"),
)
WHOLE = tree(*INFINIBAND, *ROCE)


def filled(text: str, sample: int = 0) -> NodeDraft:
    return draft_by(SysInfiniband(), Blob("ib.tree", text.encode()), sample)


def values(entity: Entity) -> dict[str, object]:
    return {name: offers[0].value for name, offers in entity.offers.items()}


def test_a_device_has_the_function_that_its_link_leads_to() -> None:
    nic = filled(WHOLE).nic(bus_id="0000:18:00.0")
    assert nic.keys == {"rdma": "mlx5_0", "bus_id": "0000:18:00.0"}
    assert values(nic) == {
        "firmware": "28.41.1000",
        "hca_type": "MT4129",
        "board_id": "MT_0000000838",
        "node_guid": "a088:c203:0055:1234",
        "transport": "InfiniBand",
        "numa": 0,
    }


def test_an_infiniband_port_is_read_whole() -> None:
    assert values(filled(WHOLE).nic(rdma="mlx5_0").child("port", 1)) == {
        "state": "ACTIVE",
        "phys_state": "LinkUp",
        "rate_gbps": 400.0,
        "lanes": 4,
        "speed_name": "NDR",
        "link_layer": "InfiniBand",
        "lid": 418,
        "sm_lid": 1,
        "gids": ("0 fe80::a088:c203:55:1234",),
        "guid": "a088:c203:0055:1234",
        "netdev": "ibs18",
    }


def test_every_offer_is_a_field_of_the_model() -> None:
    draft = filled(WHOLE)
    nic_fields = {field.name for field in dataclasses.fields(Nic)}
    port_fields = {field.name for field in dataclasses.fields(NicPort)}
    for nic in draft.entities("nic"):
        assert nic.offers.keys() <= nic_fields
        for child in nic.children.values():
            assert child.offers.keys() <= port_fields


def test_a_counter_that_the_firmware_refuses_loses_only_itself() -> None:
    draft = filled(WHOLE)
    counters = draft.nic(rdma="mlx5_0").child("port", 1).counters
    assert {name: offers[0].value for name, offers in counters.items()} == {"symbol_error": 3, "out_of_sequence": 7}
    assert [missing.why for missing in draft.missing] == ["EINVAL Invalid argument"]
    assert "link_downed, VL15_dropped" in draft.missing[0].what


def test_lifespan_is_no_counter() -> None:
    assert "lifespan" not in filled(WHOLE).nic(rdma="mlx5_0").child("port", 1).counters


def test_the_second_sample_holds_counters_alone() -> None:
    text = tree(("=", f"{I0}/ports/1/counters/symbol_error", "9"))
    reading = filled(text, sample=1).nic(rdma="mlx5_0").child("port", 1).counters["symbol_error"][0]
    assert (reading.value, reading.sample) == (9, 1)


def test_counters_of_the_whole_device_are_the_devices() -> None:
    nic = filled(tree(("=", "sys/class/infiniband/efa_0/hw_counters/rx_drops", "4"))).nic(rdma="efa_0")
    assert nic.counters["rx_drops"][0].value == 4


def test_a_roce_port_belongs_to_the_interface_of_its_first_gid() -> None:
    port = values(filled(WHOLE).nic(rdma="mlx5_1").child("port", 1))
    assert port["netdev"] == "bond0"
    assert port["gids"] == ("0 fe80::ac0:ebff:feda:1cfb RoCE v1", "3 ::ffff:198.51.100.6 RoCE v2")
    assert "guid" not in port


def test_a_port_that_is_down_still_offers_its_rate() -> None:
    port = values(filled(WHOLE).nic(rdma="mlx5_1").child("port", 1))
    assert (port["state"], port["rate_gbps"]) == ("DOWN", 40.0)


def test_interfaces_of_the_function_learn_its_bus_id() -> None:
    draft = filled(WHOLE)
    for name in ("ens1f0np0", "ens1f0np0_0"):
        assert draft.netdev(name).offers["bus_id"][0].value == "0000:29:00.0"


def test_two_interfaces_and_no_gid_leave_the_ports_interface_open() -> None:
    lines = [line for line in ROCE if "ndevs" not in line[1]]
    assert "netdev" not in filled(tree(*lines)).nic(rdma="mlx5_1").child("port", 1).offers


def test_dev_port_tells_the_ports_of_one_function_apart() -> None:
    base = "sys/class/infiniband/mlx4_0"
    text = tree(
        ("=", f"{base}/ports/1/state", "4: ACTIVE"),
        ("=", f"{base}/ports/2/state", "4: ACTIVE"),
        ("=", f"{base}/device/net/eth2/dev_port", "0"),
        ("=", f"{base}/device/net/eth3/dev_port", "1"),
    )
    nic = filled(text).nic(rdma="mlx4_0")
    assert [nic.child("port", number).offers["netdev"][0].value for number in (1, 2)] == ["eth2", "eth3"]


def test_no_numa_node_is_kept_as_the_kernel_says_it() -> None:
    assert values(filled(WHOLE).nic(rdma="mlx5_1"))["numa"] == -1


def test_a_guid_of_zeros_is_no_reading() -> None:
    offer = filled(WHOLE).nic(rdma="mlx5_1").offers["node_guid"][0]
    assert (offer.value, bool(offer.why)) == (None, True)


def test_a_rate_that_cannot_be_read_says_why() -> None:
    lines = [line for line in INFINIBAND if not line[1].endswith("/rate")]
    text = tree(*lines, ("!", f"{I0}/ports/1/rate", "EINVAL Invalid argument"))
    offer = filled(text).nic(rdma="mlx5_0").child("port", 1).offers["rate_gbps"][0]
    assert (offer.value, offer.why) == (None, "EINVAL Invalid argument")


def test_a_virtual_function_is_known_by_its_parent() -> None:
    nic = filled(tree((">", f"{I0}/device/physfn", "../0000:18:00.0"))).nic(rdma="mlx5_0")
    assert values(nic)["is_vf"] is True


def test_a_fact_knows_its_line() -> None:
    origin = filled(WHOLE).nic(rdma="mlx5_0").offers["firmware"][0].origin
    assert (origin.line, origin.text) == (4, f"{I0}/fw_ver\t28.41.1000")


def test_only_trees_with_rdma_devices_are_recognised() -> None:
    assert SysInfiniband().recognises(WHOLE)
    assert not SysInfiniband().recognises("= sys/class/net/eth0/mtu\t1500\n")
    assert not SysInfiniband().recognises("ls /sys/class/infiniband/mlx5_0\n")


@pytest.mark.parametrize("name", ["state", "phys_state", "rate", "lid", "gids/0", "counters/symbol_error"])
@settings(max_examples=25)
@given(junk=st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\\"), max_size=30))
def test_a_bad_value_loses_only_that_value(name: str, junk: str) -> None:
    changed = [(op, path, junk if path == f"{I0}/ports/1/{name}" else text) for op, path, text in INFINIBAND]
    port = filled(tree(*changed)).nic(rdma="mlx5_0").child("port", 1)
    good = values(filled(WHOLE).nic(rdma="mlx5_0").child("port", 1))
    touched = {"rate": {"rate_gbps", "lanes", "speed_name"}, "gids/0": {"gids", "guid"}}.get(name, {name})
    assert {key: text for key, text in values(port).items() if key not in touched} == {
        key: text for key, text in good.items() if key not in touched
    }
    assert port.counters["out_of_sequence"][0].value == 7
