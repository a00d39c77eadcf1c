"""numactl -H: processors and distances of NUMA nodes, and a node whose memory is gone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import node_of
from topodiag.evidence.host.numactl import Numactl
from topodiag.evidence.interface import Blob

TEXT = """\
available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3
node 0 size: 515512 MB
node 0 free: 12 MB
node 1 cpus: {cpus}
node 1 size: {size} MB
node 1 free: 0 MB
node distances:
node   0   1
  0:  10  21
  1:  21  10
"""


def test_a_node_has_its_processors_and_distances() -> None:
    node = node_of(TEXT.format(cpus="4 5 6 7", size=516000))
    assert [(each.id, each.cpus.value, each.distances.value) for each in node.numa] == [
        (0, "0-3", (10, 21)),
        (1, "4-7", (21, 10)),
    ]
    assert node.reports == ()


@pytest.mark.parametrize(("cpus", "told"), [("4 5 6 7", 1), ("", 0)], ids=["with processors", "memory alone is none"])
def test_processors_without_memory_are_told(cpus: str, told: int) -> None:
    assert len(node_of(TEXT.format(cpus=cpus, size=0)).reports) == told


@given(st.text(max_size=200) | st.text(alphabet="node 0 cpus: size distances\n", max_size=200))
def test_any_text_is_read_or_left(text: str) -> None:
    Numactl().recognises(text)
    Numactl().parse(Blob("x", text.encode()))
