"""`rdma link show`: InfiniBand, RoCE, old and new releases, and JSON."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.rdma_tools import RdmaLink
from topodiag.words.unfilled import is_unfilled

INFINIBAND = (
    "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 418 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP \n"
)
JSON = text_of("rdma-link", "JSON")


def filled(text: str) -> NodeDraft:
    return draft_by(RdmaLink(), Blob("rdma.txt", text.encode()))


def facts(text: str, device: str, number: int = 1) -> dict[str, object]:
    entity: Entity = filled(text).nic(rdma=device).child("port", number)
    return {name: offers[0].value for name, offers in entity.offers.items()}


def test_counters_tell_no_state() -> None:
    text = "link mlx5_0/1 rx_write_requests 12 out_of_sequence 41002 local_ack_timeout_err 7\n"
    assert not RdmaLink().told(RdmaLink().parse(Blob("rdma.txt", text.encode())))


def test_pretty_json_knows_the_line_of_each_port() -> None:
    pretty = json.dumps(json.loads(JSON), indent=4)
    origin = filled(pretty).nic(rdma="mlx5_2").child("port", 1).offers["state"][0].origin
    assert RdmaLink().recognises(pretty)
    assert '"mlx5_2"' in pretty.split("\n")[origin.line - 1]


@pytest.mark.parametrize("text", ["[" * 100_000, "[" + "9" * 10_000 + "]", JSON[:-20], "[1, null]"])
def test_hostile_or_cut_json_is_left(text: str) -> None:
    parsed = RdmaLink().parse(Blob("j", text.encode()))
    assert parsed.records == []
    assert parsed.unread_count > 0


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=20))
def test_a_bad_value_loses_only_that_value(junk: str) -> None:
    assume(not is_unfilled(junk))  # a line with a place like %s is a program's text
    document = facts(INFINIBAND.replace("lid 418", f"lid {junk}", 1), "mlx5_0")
    assert (document["state"], document["sm_lid"]) == ("ACTIVE", 1)
