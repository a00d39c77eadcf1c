"""The wiring of the pictures: from captured evidence to the machine that is drawn, and what was found on it."""

from __future__ import annotations

from topodiag.app.scan import scan
from topodiag.model.errors import InputError
from topodiag.model.node import Node
from topodiag.model.result import Result


def pictured(source: str) -> tuple[Result, Node]:
    """The first machine in some evidence, with what was found. Raises InputError where there is none to draw."""
    result = scan([source])
    node = result.nodes[0]
    if not (node.gpus or node.nics or node.numa):
        raise InputError(source, "shows no GPU, no NIC and no NUMA node to draw")
    return result, node
