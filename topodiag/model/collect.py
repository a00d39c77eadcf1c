"""What came of asking many nodes for their evidence: one answer for each node, whatever it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import StrEnum
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from topodiag.lazy import dataclass
from topodiag.version import __version__

SCHEMA_VERSION = "1.0"


class State(StrEnum):
    """How a node answered. Only `ANSWERED` brought evidence from the node itself."""

    ANSWERED = "answered"
    """Its bundle is there, and size and checksum fit."""
    TIMED_OUT = "timed out"
    """It was asked, and did not come to an end in time: what it waited for is evidence."""
    REFUSED = "refused"
    """It was not reached, or it cannot run the collector."""
    GARBAGE = "garbage"
    """What came is no bundle, or only a part of one."""
    NOT_ASKED = "not asked"
    """The whole was over before its turn."""


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """One node. `file` is relative to the folder, "" where there is none, and `sha256` and `size` are its own; `host`
    is what the node calls itself; `waited_for` are the items that the collector waited for on a node that hung,
    `hung_probes` those that hung on one that answered; `attempts`: 2 where it was not reached at the first time."""

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
        return all(answer.state is State.ANSWERED for answer in self.answers)

    def of(self, state: State) -> Iterator[NodeAnswer]:
        return (answer for answer in self.answers if answer.state is state)


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """The program that wrote the document."""

    name: Literal["topodiag"] = "topodiag"
    version: str = __version__


class Silent(msgspec.Struct, frozen=True, kw_only=True):
    """A node of which there is no bundle, and why."""

    what: str
    why: str
    needs_root: bool = False


class CollectDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the last call into a folder. `before` are nodes whose bundle from an earlier call is still good.
    `inputs` and `findings` are empty: bundles are read by `fleet compare`."""

    schema_version: Annotated[str, Meta(pattern=r"^1\.[0-9]+$")]
    kind: Literal["collect"]
    tool: Program
    complete: bool
    counts: dict[State, int]
    folder: str
    via: str
    started: str
    seconds: float
    answers: tuple[NodeAnswer, ...]
    before: tuple[NodeAnswer, ...]
    stopped: str
    inputs: tuple[()] = ()
    findings: tuple[()] = ()
    not_observed: tuple[Silent, ...] = ()


def document(collection: Collection) -> bytes:
    """collect.json, which `--format json` prints too: what came of the call, and each node."""
    own = {field.name: getattr(collection, field.name) for field in fields(collection)}
    silent = (Silent(what=answer.node, why=answer.why) for answer in collection.answers if not answer.file)
    collect_document = CollectDocument(
        **own,
        schema_version=SCHEMA_VERSION,
        kind="collect",
        tool=Program(),
        complete=collection.complete,
        counts={state: sum(1 for _ in collection.of(state)) for state in State},
        not_observed=tuple(silent),
    )
    return msgspec.json.format(msgspec.json.encode(collect_document), indent=1) + b"\n"


def read_document(text: bytes) -> CollectDocument | None:
    """The document that was written; None for what is none, or one of another major version."""
    try:
        return msgspec.json.decode(text, type=CollectDocument)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
