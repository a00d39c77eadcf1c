"""A fleet: facts of many nodes in long form, the groups of nodes that may be compared, and what differs inside them.

Values only. `topodiag.fleet.facts` turns a node into facts, `topodiag.fleet.compare` compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FactKind(Enum):
    """How a fact may be compared between siblings, and over time."""

    CATEGORY = "category"
    """Equal or not: versions, modes, widths, counts of parts."""
    NUMBER = "number"
    """A quantity with noise: sizes, rates that were measured."""
    COUNTER = "counter"
    """Runs since boot or driver load: compared as a rate, and over time as growth."""
    IDENTITY = "identity"
    """Of this one part alone: serials, UUIDs, GUIDs, addresses. Rightly different on every node."""
    MOMENT = "moment"
    """Of the moment of the capture alone: clocks, use, uptime. Rightly different between captures."""


CLOSED = frozenset({"kernel command line", "kernel modules", "driver parameters", "nccl.conf", "kernel log"})
"""Families in which a key without a row is one that this node does not have, where another key has a row."""


@dataclass(frozen=True, slots=True)
class NodeFact:
    """One fact of one node. `part` is `gpu3`, `gpu3/link6`, `mlx5_0`, `mlx5_0/1`, a bus id, or "" for the node.

    `value` is text for a category and an identity, a number otherwise, in `unit` (bytes, s, GB/s, errors; "" for none).
    `source` is the file of the evidence and the line in it.
    """

    family: str
    part: str
    key: str
    value: str | int | float
    kind: FactKind = FactKind.CATEGORY
    unit: str = ""
    source: str = ""
