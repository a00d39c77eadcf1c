"""What checks of topology files and of nodes ask of a file alike: what it stands for, and its first host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topodiag.model.finding import Status
from topodiag.model.node import Node
from topodiag.model.topics import Topic

if TYPE_CHECKING:
    from topodiag.model.nccl_tree import Element


def alone(node: Node) -> bool:
    """Whether the file is all that is known of the machine, so that the node is what the file says."""
    return node.nccl_file is not None and node.told <= {Topic.TOPOLOGY_FILE}


def first_host(tree: Element) -> tuple[Element, ...]:
    """The processors of the first host: a dump of a multi-node NVLink clique holds several."""
    cpus = tree.having("cpu")
    return tuple(cpu for cpu in cpus if cpu.get("host_hash") == cpus[0].get("host_hash"))


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
