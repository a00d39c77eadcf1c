"""The corpus' topology files: every channel that NCCL's search found on them, against those found here.

`pytest -s` shows how many graphs and channels of each version were compared, and every miss. Files that
`test_corpus_predict` holds to the last channel are not searched again. Machines that exist are searched in every
version, the others in one of three; TOPODIAG_TESTS=deep searches all in all.
"""

import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.depth import some_of
from tests.nccl.corpus import ABSENT, TOPOLOGIES, is_bare, system_of, topology, truth_of
from tests.nccl.test_corpus_predict import NAMES as PREDICTED
from tests.searches import search_graphs
from topodiag.nccl.graph.graph import RejectedError
from topodiag.nccl.prediction import PredictedGraph
from topodiag.nccl.search.searched import describe
from topodiag.nccl.settings import read_settings

if not TOPOLOGIES:
    pytest.skip(ABSENT, allow_module_level=True)

_WITH_NVLS = 3
MINORS = (27, 28, 30)
MADE_UP = ("gen", "x_")
"""How names of files begin that are drawn by chance, or are one machine in other spellings."""
_LEAST_ORDERS = 0.99


@dataclass
class Count:
    graphs: int = 0
    channels: int = 0
    equal_channels: int = 0
    misses: list[str] = field(default_factory=list)


def _found(name: str, minor: int, nodes: int, nvls: bool) -> tuple[PredictedGraph, ...] | None:
    """The graphs of rank 0, None where NCCL would not start."""
    system = "" if topology(name).refusal(minor) else system_of(name, minor, nodes)
    if isinstance(system, str):
        return None
    try:
        return tuple(describe(system, graph) for graph in search_graphs(system, read_settings({}, minor), nvls=nvls))
    except RejectedError:
        return None


_SUMMARY = ("pattern", "cross_nic", "channels", "bw_intra", "bw_inter", "type_intra", "type_inter", "same_channels")


def _compare(where: str, graph: PredictedGraph, wanted: dict[str, Any], count: Count) -> None:
    count.graphs += 1
    ours, theirs = [getattr(graph, key) for key in _SUMMARY], [wanted[key] for key in _SUMMARY]
    if [round(value, 6) if isinstance(value, float) else value for value in ours] != theirs:
        count.misses.append(f"{where}: {ours} where NCCL has {theirs} of {_SUMMARY}")
    orders = [tuple(order) for order in wanted["orders"]]
    count.channels += len(orders)
    count.equal_channels += sum(ours == theirs for ours, theirs in zip(graph.orders, orders, strict=False))


@pytest.mark.parametrize("minor", MINORS)
def test_every_graph_is_that_of_nccl(minor: int) -> None:
    count = Count()
    for name in sorted(set(TOPOLOGIES) - set(PREDICTED)):
        if minor not in some_of(MINORS, name, always=not name.startswith(MADE_UP)):
            continue
        for nodes in (1, 2):
            truth = truth_of(name)[f"2.{minor}"][str(nodes)]
            wanted = truth.get("graphs") or []
            graphs = _found(name, minor, nodes, len(wanted) == _WITH_NVLS)
            where = f"{name} on {nodes} under 2.{minor}"
            if is_bare(truth):
                assert graphs is not None, where
                continue
            if (graphs is not None) != truth["accepted"]:
                count.misses.append(f"{where}: NCCL {'accepts' if truth['accepted'] else 'refuses'} it")
            for ours, theirs in zip(graphs or (), wanted, strict=False):
                _compare(where, ours, theirs, count)
            if graphs is not None and len(graphs) != len(wanted):
                count.misses.append(f"{where}: {len(graphs)} graphs where NCCL has {len(wanted)}")
    sys.stdout.write(
        f"2.{minor}: {count.graphs} graphs, {count.equal_channels} of {count.channels} channels in NCCL's order\n"
    )

    assert count.graphs
    assert not count.misses, "\n".join(count.misses)
    assert count.equal_channels >= _LEAST_ORDERS * count.channels
