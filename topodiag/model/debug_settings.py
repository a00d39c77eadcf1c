"""What to set before the next run, so that its logs answer every check: one table, which `topodiag env` prints.

Names and first versions as in NCCL's src/debug.cc and src/include/nccl_common.h (every known version), and in
torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp for the flight recorder.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data

_DATA = own_data("model/debug_settings")
SUBSYSTEMS: Mapping[str, str] = _DATA["subsystems"]
"""What is logged once per communicator: a few hundred lines per rank, and nothing while the job runs."""
QUICK = ("INIT", "ENV", "NET", "GRAPH")
HANG = "COLL"
"""One line per operation: for hangs, and too much for a long run."""
PEERS = "RAS"
"""Some ten lines per process, and those of the peers that it no longer reaches: who is stopped or gone (2.24)."""
LEVELS = ("quick", "recommended", "full")


@dataclass(frozen=True, slots=True)
class DebugSetting:
    """One variable, its value, and in one or two lines what it is for and what to beware of."""

    name: str
    value: str
    why: tuple[str, ...]


def subsystems_for(level: str) -> str:
    names = list(QUICK if level == "quick" else SUBSYSTEMS)
    return ",".join([*names, PEERS, HANG] if level == "full" else names)


def next_time(*, hang: bool = False) -> str:
    """What to log next time, the same list wherever a report asks for it: every subsystem that is cheap, with the
    operations where it matters who entered which. NCCL passes over the names that a version does not know."""
    return f"set NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS={subsystems_for('full' if hang else 'recommended')} next time"


def debug_settings(level: str = "recommended", folder: str = "") -> tuple[DebugSetting, ...]:
    """The settings of one of LEVELS; files go to `folder`, which must exist on every node."""
    place = f"{folder.rstrip('/') or '/'}/".replace("//", "/") if folder else ""
    given = {"folder": place, "here": place or "./", "subsystems": subsystems_for(level)}
    words = _DATA["subsystems_why"][level]
    return tuple(
        DebugSetting(entry["name"], entry["value"].format(**given), tuple(entry.get("why", words)))
        for entry in _DATA["setting"]
        if LEVELS.index(entry["from"]) <= LEVELS.index(level)
    )
