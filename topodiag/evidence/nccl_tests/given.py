"""Settings of a run, and who gives them: NCCL's log shows what is in force, a command what was meant."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin

MAX_SETTINGS = 200


@dataclass(frozen=True, slots=True)
class Given:
    """The value of a setting, "" for one that is unset, and the line of the command that gives it; None where NCCL
    itself prints it."""

    value: str
    command: Origin | None = None


def give(known: dict[str, Given], name: str, given: Given) -> None:
    """Adds a setting to those that are known. The first one counts, and what NCCL prints before any command."""
    before = known.get(name)
    if not given.value:
        known.pop(name, None)
    elif before is None:
        if len(known) < MAX_SETTINGS:
            known[name] = given
    elif before.command is not None and given.command is None:
        known[name] = given


def values_of(known: Mapping[str, Given]) -> dict[str, str]:
    """Value by name."""
    return {name: given.value for name, given in known.items()}


def commands_of(known: Mapping[str, Given]) -> dict[str, Origin]:
    """Command by name, of those settings that no line of NCCL shows."""
    return {name: given.command for name, given in known.items() if given.command is not None}


__all__ = ["MAX_SETTINGS", "Given", "commands_of", "give", "values_of"]
