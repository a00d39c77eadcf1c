"""The corpus' topology files: whole predictions against what NCCL decided. A sixth of the files, spread over all.

Files drawn by chance are asked two of the six questions of version and nodes, all with TOPODIAG_TESTS=deep.
"""

from functools import cache
from typing import Any

import pytest

from tests.depth import some_of
from tests.nccl.corpus import ABSENT, TOPOLOGIES, is_bare, topology, truth_of
from topodiag.model.node import Node
from topodiag.nccl.predict import predict
from topodiag.nccl.prediction import Prediction

NAMES = TOPOLOGIES[::6]

if not NAMES:
    pytest.skip(ABSENT, allow_module_level=True)

ASKED = [(version, nodes) for version in ("2.27", "2.28", "2.30") for nodes in (1, 2)]
_KINDS = ("GPU", "CPU", "NET", "NVS")
"""Vertices whose paths are compared; 2.30 prints others too."""


@cache
def node(name: str) -> Node:
    return Node(name, nccl_file=topology(name))


def asked(name: str) -> list[tuple[str, Prediction, Any]]:
    return [
        (f"{name} {version} x{nodes}", predict(node(name), nodes=nodes, version=version, sizes=(), whole=True),
         truth_of(name)[version][str(nodes)])
        for version, nodes in some_of(ASKED, name, always=not name.startswith("gen"))
    ]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_verdict_bandwidths_paths_and_graphs_are_nccls(name: str) -> None:
    for label, prediction, wanted in asked(name):
        if is_bare(wanted):
            assert prediction.accepted, label
            continue
        assert prediction.accepted == wanted["accepted"], label
        if not prediction.accepted:
            words = wanted["warn"]
            assert not words or any(prediction.why in word or word in prediction.why for word in words), (
                label,
                prediction.why,
            )
            continue
        assert (prediction.max_bw, prediction.total_bw) == pytest.approx(
            (wanted["system"]["max_bw"], wanted["system"]["total_bw"]), abs=0.051
        ), label
        for start, ends in wanted["paths"].items():
            for end, (hops, gbs, kind) in ends.items():
                if end.startswith(_KINDS):
                    path = prediction.paths[start][end]
                    assert (path[0], path[2]) == (hops, kind), (label, start, end)
                    assert path[1] == pytest.approx(gbs, abs=0.051), (label, start, end)
        assert [_graph(graph) for graph in wanted["graphs"]] == [
            (g.pattern, g.cross_nic, g.channels, g.bw_intra, g.bw_inter, g.type_intra, g.type_inter, g.same_channels,
             [list(order) for order in g.orders])
            for g in prediction.graphs
        ], label  # fmt: skip


def _graph(wanted: Any) -> tuple[object, ...]:
    keys = ("pattern", "cross_nic", "channels", "bw_intra", "bw_inter", "type_intra", "type_inter", "same_channels")
    return (*(wanted[key] for key in keys), wanted["orders"])
