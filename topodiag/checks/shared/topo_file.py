"""What checks of topology files and of nodes ask of a file alike: what it stands for, and its first host."""

from __future__ import annotations

from topodiag.model.nccl_tree import Element
from topodiag.model.node import Node

FILE_KIND = "nccl-xml"


def alone(node: Node) -> bool:
    """Whether the file is all that is known of the machine, so that the node is what the file says."""
    return node.nccl_file is not None and node.read <= {FILE_KIND}


def first_host(tree: Element) -> tuple[Element, ...]:
    """The processors of the first host: a dump of a multi-node NVLink clique holds several."""
    cpus = tree.having("cpu")
    return tuple(cpu for cpu in cpus if cpu.get("host_hash") == cpus[0].get("host_hash"))
