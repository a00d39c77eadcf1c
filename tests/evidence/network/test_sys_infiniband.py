"""`/sys/class/infiniband` from a tree file: identity, ports, counters, and what the kernel refuses."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.sys_infiniband import SysInfiniband
from topodiag.model.devices import Nic, NicPort

I0 = "sys/class/infiniband/mlx5_0"
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
WHOLE = text_of("sys-infiniband", "WHOLE")


def filled(text: str, sample: int = 0) -> NodeDraft:
    return draft_by(SysInfiniband(), Blob("ib.tree", text.encode()), sample)


def values(entity: Entity) -> dict[str, object]:
    return {name: offers[0].value for name, offers in entity.offers.items()}


def test_every_offer_is_a_field_of_the_model() -> None:
    draft = filled(WHOLE)
    nic_fields = {field.name for field in dataclasses.fields(Nic)}
    port_fields = {field.name for field in dataclasses.fields(NicPort)}
    for nic in draft.entities("nic"):
        assert nic.offers.keys() <= nic_fields
        for child in nic.children.values():
            assert child.offers.keys() <= port_fields


def test_the_second_sample_holds_counters_alone() -> None:
    text = tree(("=", f"{I0}/ports/1/counters/symbol_error", "9"))
    reading = filled(text, sample=1).nic(rdma="mlx5_0").child("port", 1).counters["symbol_error"][0]
    assert (reading.value, reading.sample) == (9, 1)


@pytest.mark.parametrize("name", ["state", "phys_state", "rate", "lid", "gids/0", "counters/symbol_error"])
@settings(max_examples=25)
@given(junk=st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\\"), max_size=30))
def test_a_bad_value_loses_only_that_value(name: str, junk: str) -> None:
    changed = [(op, path, junk if path == f"{I0}/ports/1/{name}" else text) for op, path, text in INFINIBAND]
    port = filled(tree(*changed)).nic(rdma="mlx5_0").child("port", 1)
    good = values(filled(WHOLE).nic(rdma="mlx5_0").child("port", 1))
    touched = {"rate": {"rate_gbps", "lanes"}, "gids/0": {"gids", "guid"}}.get(name, {name})
    assert {key: text for key, text in values(port).items() if key not in touched} == {
        key: text for key, text in good.items() if key not in touched
    }
    assert port.counters["out_of_sequence"][0].value == 7
