"""What came of asking many nodes for their evidence: one answer for each node, whatever it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

SCHEMA_VERSION = "1.0"


class State(StrEnum):
    """How a node answered. Only `ANSWERED` brought evidence from the node itself."""

    ANSWERED = "answered"
    """Its bundle is there, and size and checksum fit."""
    TIMED_OUT = "timed out"
    """It was reached, and did not come to an end in time: what it waited for is evidence."""
    REFUSED = "refused"
    """It was not reached, or it cannot run the collector."""
    GARBAGE = "garbage"
    """What came is no bundle, or only a part of one."""
    NOT_ASKED = "not asked"
    """The whole was over before its turn."""


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """One node. `file` is relative to the folder, empty where there is none; `host` is what the node calls itself;
    `waited_for` are the collector's items that hung; `retry`: it was not reached at the first time either."""

    node: str
    state: State
    why: str = ""
    seconds: float = 0.0
    file: str = ""
    sha256: str = ""
    size: int = 0
    host: str = ""
    boot_id: str = ""
    time: str = ""
    waited_for: tuple[str, ...] = ()
    hung_probes: tuple[str, ...] = ()
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Collection:
    """All answers of one call, in the order of the node set. `before` are nodes that had a good bundle already and were
    left alone; `stopped` says why the whole ended early, "" where it did not. Seconds are of the whole call."""

    folder: str
    via: str
    started: str
    seconds: float
    answers: tuple[NodeAnswer, ...]
    before: tuple[NodeAnswer, ...] = ()
    stopped: str = ""

    @property
    def complete(self) -> bool:
        """Whether there is a bundle of every node. It says nothing of their health."""
        return all(each.state is State.ANSWERED for each in self.answers)

    def of(self, state: State) -> Iterator[NodeAnswer]:
        return (each for each in self.answers if each.state is state)


def document(collection: Collection) -> bytes:
    """collect.json, which `--format json` prints too: what came of the call, and each node."""
    made: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "kind": "collect"}
    made["complete"] = collection.complete
    made["counts"] = {state.value: sum(1 for _ in collection.of(state)) for state in State}
    made |= msgspec.to_builtins(collection)
    return msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"
