"""NET006 by a topology file: versions of NCCL that lose the trees between nodes on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.topo_evidence import PRICED_BYTES, ask, spell_versions, without_file
from topodiag.cost.nccl.predict import predict_tree
from topodiag.cost.nccl.prediction import Prediction
from topodiag.cost.nccl.versions import TREES_BOUND_BY_PXN
from topodiag.model.finding import Cost, Outcome, Severity
from topodiag.model.nccl_tree import Element
from topodiag.model.node import Node
from topodiag.model.provenance import Origin

_HOPPER = 90
_AROUND = (("NCCL_PXN_DISABLE", "1"),)


class TreesLostInFile(NodeCheck):
    """NET006 by a topology file or dump: what the rings of a job of several nodes lose to a tree that is not found."""

    id = "NET006"
    title = "NCCL finds no tree between such nodes, and its one channel bounds the rings too"

    def judge(self, node: Node, peers: Sequence[Node]) -> Outcome:
        file = node.nccl_file
        if file is None:
            return without_file(self, node)
        if not _older_gpus(file.tree) or len([each for each in file.tree.walk() if each.tag == "net"]) < 2:
            return self.not_applicable(node, "GPUs from Hopper on have another way to a tree; one NIC needs none")
        asked = [minor for minor in file.asked or TREES_BOUND_BY_PXN if minor in TREES_BOUND_BY_PXN]
        if not asked:
            return self.clean(node, f"NCCL {spell_versions(file.asked)} lets a tree use any path")
        now = ask(file.tree, asked[-1], nodes=2) if file.refusal(asked[-1]) is None else None
        if now is None or not now.accepted:
            return self.not_applicable(node, "NCCL does not take the file: TOP001")
        if not now.lost_tree:
            return self.clean(node, "rings and trees between two such nodes were found")
        then = predict_tree(file.tree, nodes=2, version=f"2.{asked[-1]}", env=dict(_AROUND), sizes=(PRICED_BYTES,))
        helps = then.accepted and not then.lost_tree
        rings = now.graph(0)
        finding = self.finding(
            node,
            # Which version a job will use, and whether it has several nodes, a file by itself does not say.
            Severity.WARNING if file.asked else Severity.INFO,
            f"NCCL {spell_versions(asked)}: no tree is found between such nodes, and the one channel of its stand-in"
            " bounds the rings too",
            observed=f"{rings.channels if rings else 0} ring channels, 1 tree channel of 0.1 GB/s",
            expected="as many tree channels as rings: 2.24 and 2.29 find them",
            fix=(
                "NCCL 2.29 or later, or 2.24",
                *(("until then NCCL_PXN_DISABLE=1: GPUs before Hopper then have a path that a tree may use",) * helps),
            ),
            cost=_cost(now, then) if helps else Cost(text="one channel in place of all"),
            evidence=[Origin(file.name)],
            settings=_AROUND if helps else (),
        )
        return self.found(node, [finding])


def _older_gpus(tree: Element) -> bool:
    words = [each.get("sm") or "" for each in tree.walk() if each.tag == "gpu"]
    known = [int(word) for word in words if word.isascii() and word.isdigit()]
    return bool(known) and min(known) < _HOPPER


def _cost(now: Prediction, then: Prediction) -> Cost:
    old = next((choice for choice in then.choices if choice.collective == "AllReduce"), None)
    new = next((choice for choice in now.choices if choice.collective == "AllReduce"), None)
    if old is None or new is None or old.busbw_gbs <= new.busbw_gbs:
        return Cost(text="one channel in place of all")
    text = f"an all-reduce of 1 GiB on two nodes: {new.busbw_gbs:.0f} instead of {old.busbw_gbs:.0f} GB/s by NCCL's own"
    return Cost(old.busbw_gbs - new.busbw_gbs, 1 - new.busbw_gbs / old.busbw_gbs, f"{text} reckoning")
