"""`/sys/class/infiniband` from a tree file: identity, ports, counters, and what the kernel refuses."""

import dataclasses
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.sys_infiniband import SysInfiniband
from topodiag.model.devices import Nic, NicPort

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
    text = "= sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error\t9\n"
    reading = filled(text, sample=1).nic(rdma="mlx5_0").child("port", 1).counters["symbol_error"][0]
    assert (reading.value, reading.sample) == (9, 1)


@pytest.mark.parametrize("name", ["state", "phys_state", "rate", "lid", "gids/0", "counters/symbol_error"])
@settings(max_examples=25)
@given(junk=st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\\"), max_size=30))
def test_a_bad_value_loses_only_that_value(name: str, junk: str) -> None:
    changed, count = re.subn(rf"(?<=mlx5_0/ports/1/{name}\t).*", lambda _: junk, WHOLE, count=1)
    assert count
    port = filled(changed).nic(rdma="mlx5_0").child("port", 1)
    good = values(filled(WHOLE).nic(rdma="mlx5_0").child("port", 1))
    touched = {"rate": {"rate_gbps", "lanes"}, "gids/0": {"gids", "guid"}}.get(name, {name})
    assert {key: text for key, text in values(port).items() if key not in touched} == {
        key: text for key, text in good.items() if key not in touched
    }
    assert port.counters["out_of_sequence"][0].value == 7
