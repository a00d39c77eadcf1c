"""NET006 by a topology file: versions of NCCL that lose the trees between nodes on this machine."""

from __future__ import annotations

from topodiag.checks.interface import Advice
from topodiag.checks.shared.topo_evidence import ask, cost_by_model
from topodiag.checks.shared.topo_file import FileCheck
from topodiag.model.finding import Outcome, Severity
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.nccl_versions import KNOWN, Feature, has, spell_version, spell_versions
from topodiag.model.node import Node
from topodiag.model.provenance import Origin

_HOPPER = 90
_BEFORE = spell_version(Feature.TREES_BOUND_BY_PXN.since - 1)
_AFTER = spell_version(Feature.TREES_BOUND_BY_PXN.until + 1)
AROUND = (("NCCL_PXN_DISABLE", "1"),)
NEWER = f"NCCL {_AFTER} or later, or {_BEFORE}"
MEANWHILE = "until then NCCL_PXN_DISABLE=1: GPUs before Hopper then have a path that a tree may use"
EXPECTED = f"as many tree channels as rings: NCCL {_BEFORE} and {_AFTER} find them on such nodes"


class TreesLostInFile(FileCheck, id="NET006"):
    """NET006 by a topology file or dump: what the rings of a job of several nodes lose to a tree that is not found."""

    def observe_file(self, node: Node, file: NcclFile) -> Outcome:
        if not _older_gpus(file.tree) or len([node for node in file.tree.walk() if node.tag == "net"]) < 2:
            return self.not_applicable(node, "GPUs from Hopper on have another way to a tree; one NIC needs none")
        asked = [minor for minor in file.asked or KNOWN if has(minor, Feature.TREES_BOUND_BY_PXN)]
        if not asked:
            return self.clean(node, f"NCCL {spell_versions(file.asked)} lets a tree use any path")
        now = ask(file.tree, asked[-1], nodes=2) if file.refusal(asked[-1]) is None else None
        if now is None or not now.accepted:
            return self.not_applicable(node, "NCCL does not take the file: TOP001")
        if not now.lost_tree:
            return self.clean(node, "rings and trees between two such nodes were found")
        then = ask(file.tree, asked[-1], nodes=2, env=dict(AROUND))
        helps = then is not None and then.accepted and not then.lost_tree
        rings = now.graph(0)
        finding = self.finding(
            self.where(node),
            Advice(Severity.WARNING if file.asked else Severity.INFO),
            f"NCCL {spell_versions(asked)}: no tree is found between such nodes, and the one channel of its"
            " stand-in bounds the rings too",
            # Which version a job will use, and whether it has several nodes, a file by itself does not say.
            observed=f"{rings.channels if rings else 0} ring channels, 1 tree channel of 0.1 GB/s",
            expected=EXPECTED,
            fix=(NEWER, MEANWHILE) if helps else (NEWER,),
            cost=cost_by_model(then if helps else None, now, " on two nodes", "one channel in place of all"),
            evidence=[Origin(file.name)],
            settings=AROUND if helps else (),
        )
        return self.any_of(node, [finding])


def _older_gpus(tree: Element) -> bool:
    words = [node.get("sm") or "" for node in tree.walk() if node.tag == "gpu"]
    known = [int(word) for word in words if word.isascii() and word.isdigit()]
    return bool(known) and min(known) < _HOPPER
