"""Topology trees with the GUIDs of their NICs replaced by numbers: nodes of one build become one tree.

NCCL asks of a GUID only whether two ports are of one adapter (src/graph/topo.cc, ncclTopoAddNet: `asic`). Where each
port has its own, what it decides is the same whatever they are, and is found once for all nodes that are alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.model.nccl_tree import Element
from topodiag.nccl.numbers import c_hex
from topodiag.nccl.topo.changes import edited, with_values

_GUID = "guid"


def numbered(trees: Sequence[Element]) -> tuple[Element, ...]:
    """The same trees with GUIDs counted from 1 over all of them, equal ones alike. They stay as they are where a port
    has no GUID, or one that not every version reads as a number: NCCL then compares it with other things."""
    given = [net.get(_GUID) for tree in trees for net in tree.walk() if net.tag == "net"]
    if not given or any(guid is None or not guid.startswith("0x") for guid in given):
        return tuple(trees)
    numbers: dict[int, str] = {}
    for guid in given:
        numbers.setdefault(c_hex(guid or ""), f"0x{len(numbers) + 1:x}")

    def renamed(element: Element) -> Element:
        guid = numbers.get(c_hex(element.get(_GUID) or "")) if element.tag == "net" else None
        return with_values(element, {_GUID: guid}) if guid is not None else element

    known = {number: edited(tree, renamed) for number, tree in {id(tree): tree for tree in trees}.items()}
    return tuple(known[id(tree)] for tree in trees)
