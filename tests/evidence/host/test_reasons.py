"""Reasons for which a node is out of service: which part they name, and which tell of no fault."""

from tests.tables import examples
from topodiag.evidence.host.slurm_nodes import kind_of


@examples("reason", "kind")
def test_a_reason_names_a_part(reason: str, kind: str) -> None:
    assert kind_of(reason) == kind


@examples("reason")
def test_a_node_kept_free_on_purpose_is_no_fault(reason: str) -> None:
    assert kind_of(reason) == ""
