"""Devices that many nodes have alike are made once: the same texts give the same device, which the nodes then share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from topodiag.evidence.draft import Body, Entity
from topodiag.model.provenance import Disagreement

T = TypeVar("T")

MOST_DEVICES = 8192
"""Devices that are remembered: those of some dozen kinds of machines."""

_made: dict[tuple[Any, ...], tuple[Any, tuple[Disagreement, ...]]] = {}
"""By what makes the device, of which parts and with which arguments: the device, and which sources disagreed on it."""


def made_once(make: Callable[..., T], entity: Entity, apart: list[Disagreement], *more: Any) -> T:
    """`make(entity, apart, *more)`, or what it made of the same parts before. `make` reads nothing but its arguments,
    and of the entity nothing but its offers, counters and children."""
    parts: tuple[Body, ...] | None = entity.shared
    if parts is None:
        return make(entity, apart, *more)
    key = (make, parts, more)
    known = _made.get(key)
    if known is None:
        own: list[Disagreement] = []
        known = make(entity, own, *more), tuple(own)
        if len(_made) >= MOST_DEVICES:
            _made.clear()
        _made[key] = known
    apart.extend(known[1])
    made: T = known[0]
    return made
