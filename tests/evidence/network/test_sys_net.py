"""`/sys/class/net` and the route tables from a tree file."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.sys_net import SysNet
from topodiag.model.devices import NetDev

WHOLE = text_of("sys-net", "WHOLE")


def filled(text: str, sample: int = 0) -> NodeDraft:
    return draft_by(SysNet(), Blob("net.tree", text.encode()), sample)


def test_every_offer_is_a_field_of_the_model() -> None:
    fields = {field.name for field in dataclasses.fields(NetDev)}
    for entity in filled(WHOLE).entities("netdev"):
        assert entity.offers.keys() <= fields


def test_without_a_route_table_nothing_is_said_of_default_routes() -> None:
    text = "".join(line for line in WHOLE.splitlines(keepends=True) if "_route" not in line and "/route" not in line)
    assert "default_route" not in filled(text).netdev("eth0").offers


def test_bonding_masters_is_no_interface() -> None:
    assert "bonding_masters" not in {entity.keys["name"] for entity in filled(WHOLE).entities("netdev")}


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\\"), max_size=30))
def test_a_bad_value_loses_only_that_value(junk: str) -> None:
    offers = filled(WHOLE.replace("speed\t200000", f"speed\t{junk}")).netdev("ens1f0").offers
    assert (offers["mtu"][0].value, offers["carrier"][0].value, offers["master"][0].value) == (9000, True, "bond0")
