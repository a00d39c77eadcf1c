"""Times as sources write them, as seconds of the epoch."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TypeGuard

from topodiag.model.node import Node

EPOCH_S = 1e8
"""A time below is seconds since boot: no machine ran for three years without one."""
_LATEST_S = 4e9
_CTIME = "%a %b %d %H:%M:%S %Y"
LAST_S = 253_402_300_799
"""The last second of the year 9999: what datetime can say."""


def captured(node: Node) -> float | None:
    """When a node was captured, seconds of the epoch; None where the capture does not say."""
    return seconds(node.time.value or "")


def booted(node: Node) -> float | None:
    """When a node booted, seconds of the epoch; None where time or uptime is unknown."""
    taken, up = captured(node), node.os.uptime_s.value
    return taken - up if taken is not None and up is not None and 0 <= up < EPOCH_S * 10 else None


def is_wall(time: float | None) -> TypeGuard[float]:
    """Whether a time is one of the wall's clock that can be: finite, after 1970 and before 2096."""
    return time is not None and math.isfinite(time) and 0 < time < _LATEST_S


def seconds(text: str) -> float | None:
    """A time of ISO 8601, or of ctime (`Tue Sep  8 17:16:02 2026`); without a zone it is read as UTC. None for anything
    else."""
    text = text[:64].strip()
    try:
        moment = datetime.strptime(text, _CTIME) if text[:1].isalpha() else datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        value = moment.timestamp()
    except (ValueError, OverflowError):
        return None
    return value if is_wall(value) else None


def stamp(time: float) -> str:
    """`2026-11-22 07:14:51`, in UTC; "" for a time that no calendar has."""
    try:
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return ""
