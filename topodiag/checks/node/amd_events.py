"""What AMD's driver says in the kernel log (amd_events.toml): a GPU whose firmware is stuck, that did not start, that
was reset, or whose memory failed. GPU003 makes findings of it."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from importlib.resources import files

import msgspec

from topodiag.checks.node.gpu_events import Trouble, capital, label_at, named, times, where_gpus
from topodiag.model.finding import Severity
from topodiag.model.node import Node
from topodiag.model.system import KernelEvent


class _Words(msgspec.Struct, frozen=True):
    signs: tuple[str, ...]
    words: str
    side: str
    fix: tuple[str, ...]

    def of(self, events: list[KernelEvent]) -> list[KernelEvent]:
        return [event for event in events if any(sign in event.text.lower() for sign in self.signs)]


@cache
def _words() -> tuple[_Words, ...]:
    data = files("topodiag.checks.node").joinpath("amd_events.toml").read_bytes()
    return msgspec.toml.decode(data, type=dict[str, tuple[_Words, ...]])["trouble"]


def amd_troubles(node: Node) -> list[Trouble]:
    """One for each GPU whose driver speaks of trouble."""
    found: dict[str, list[KernelEvent]] = defaultdict(list)
    for event in node.events:
        if event.kind == "amdgpu":
            found[label_at(node, event.bus_id)].append(event)
    return [_of_gpu(node, label, events) for label, events in found.items()]


def _of_gpu(node: Node, label: str, events: list[KernelEvent]) -> Trouble:
    entry = next(entry for entry in _words() if entry.of(events))
    told, name = entry.of(events), named(node, label)
    return Trouble(
        name,
        Severity.ERROR,
        f"{capital(name)}: {entry.words}{times(told)}",
        told[0].text,
        entry.side,
        entry.fix,
        tuple(event.origin for event in events),
        where_gpus([label]),
        cost="work on this GPU stopped, and every rank of its job waits for it",
    )
