"""numactl -H: processors of NUMA nodes, and a node whose memory is gone."""

import pytest

from tests.evidence.filled import node_of
from tests.tables import texts
from topodiag.checks.shared.tables import reported_by_tables

TEXTS = texts(__file__)
TEXT = TEXTS["text"]


def test_a_node_has_its_processors() -> None:
    node = node_of(TEXT.format(cpus="4 5 6 7", size=516000))
    assert [(numa_node.id, numa_node.cpus.value) for numa_node in node.numa] == [(0, "0-3"), (1, "4-7")]
    assert not reported_by_tables(node)


@pytest.mark.parametrize(("cpus", "told"), [("4 5 6 7", 1), ("", 0)], ids=["with processors", "memory alone is none"])
def test_processors_without_memory_are_told(cpus: str, told: int) -> None:
    assert len(reported_by_tables(node_of(TEXT.format(cpus=cpus, size=0)))) == told
