"""What checks of topology files and of nodes ask of a file alike: what it stands for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from topodiag.checks.interface import NodeCheck
from topodiag.model.finding import Outcome, Status
from topodiag.model.node import Node
from topodiag.model.provenance import Topic

if TYPE_CHECKING:
    from topodiag.model.nccl_tree import NcclFile


def alone(node: Node) -> bool:
    """Whether the file is all that is known of the machine, so that the node is what the file says."""
    return node.nccl_file is not None and node.topics <= {Topic.TOPOLOGY_FILE}


def nothing_to_judge(node: Node) -> tuple[Status, str] | None:
    """The answer of all checks of topology files for a node without one. NCCL's search is then not imported."""
    return without_file(node) if node.nccl_file is None else None


def without_file(node: Node) -> tuple[Status, str]:
    """The answer of every check of topology files for a node of which none was read: a file that NCCL is told to read
    may say anything."""
    named = next((s.value.strip() for s in node.settings if s.name == "NCCL_TOPO_FILE" and s.value.strip()), "")
    for process in node.processes:
        named = named or (process.nccl_env.get({}).get("NCCL_TOPO_FILE") or "").strip()
    if named:
        return Status.UNKNOWN, f"NCCL_TOPO_FILE names {named}, which is not in the evidence"
    return Status.NOT_APPLICABLE, "no topology file in the evidence"


class FileCheck(NodeCheck):
    """A check of the topology file of a node. A node without one is unknown, or not applicable."""

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        file = judged.nccl_file
        if file is None:
            status, why = without_file(judged)
            return Outcome(self.id, status, judged.host, why=why)
        return self.observe_file(judged, file)

    @abstractmethod
    def observe_file(self, node: Node, file: NcclFile) -> Outcome:
        """What is so with a file: findings, or why there are none."""
