"""Reads a text with one source and shows what it offered, for the tests of the host's sources."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from tests.tables import within
from topodiag.evidence import registry
from topodiag.evidence.assemble import assemble
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.model.node import Node

SINGLES = {"node", "cpu", "os", "services", "scheduler", "registry"}


def device(draft: NodeDraft, name: str) -> Entity:
    """The device of a draft that a row names, or its part."""
    whole, _, part = name.partition(", ")
    if part:
        kind, number = part.split()
        return device(draft, whole).child(kind, int(number))
    kind, _, key = name.partition(" ")
    if kind in SINGLES:
        return draft.single(kind)
    if kind == "gpu":
        if key.isdecimal():
            return draft.gpu(index=int(key))
        return draft.gpu(uuid=key) if key.startswith("GPU-") else draft.gpu(bus_id=key)
    if kind == "nic":
        if ":" in key:
            return draft.nic(bus_id=key)
        return draft.nic(label=key) if key.startswith("NIC") else draft.nic(rdma=key)
    if kind == "numa":
        return draft.numa(int(key))
    return {"pci": draft.pci, "netdev": draft.netdev}[kind](key)


def draft_by(source: Source, blob: Blob | str, sample: int = 0) -> NodeDraft:
    """The draft that a source alone fills from a text."""
    draft = NodeDraft()
    blob = Blob("evidence.txt", blob.encode()) if isinstance(blob, str) else blob
    draft.weight.trust, draft.weight.sample = source.trust, sample
    source.read(blob, draft)
    return draft


def node_by(source: Source, blob: Blob) -> Node:
    """The node that a source alone shows in a text that it recognises."""
    assert source.recognises(blob.text)
    return assemble(draft_by(source, blob), "n")


def read(kind: str, text: str | bytes, name: str = "evidence.txt") -> tuple[NodeDraft, Parsed[Any]]:
    """The draft that the source of this kind fills from the text, and what it parsed."""
    source = registry.source(kind)
    draft = NodeDraft()
    draft.weight.trust = source.trust
    blob = Blob(name, text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)
    return draft, source.read(blob, draft)


def recognises(kind: str, text: str) -> bool:
    source = registry.source(kind)
    return source.recognises(text)


def value(entity: Entity, name: str) -> Any:
    """The first value offered for a field, or None."""
    return next((offer.value for offer in entity.offers.get(name, []) if offer.value is not None), None)


def values(entity: Entity) -> dict[str, Any]:
    """The first value offered for each field and counter."""
    return {name: offers[0].value for name, offers in (entity.offers | entity.counters).items()}


def label(entity: Entity) -> str:
    """What tables of pairs call a device."""
    keys = entity.keys
    return f"GPU{keys['index']}" if "index" in keys else str(keys.get("label", keys.get("rdma", keys.get("bus_id"))))


def why(entity: Entity, name: str) -> str:
    """The first reason offered for a field having no value."""
    return next((offer.why for offer in entity.offers.get(name, []) if offer.value is None), "")


def place(entity: Entity, name: str) -> tuple[int | None, str]:
    """The line, and its text, of the first offer for a field."""
    origin = entity.offers[name][0].origin
    return origin.line, origin.text


def drop_lines(text: str, numbers: set[int]) -> str:
    lines = text.split("\n")
    return "\n".join(line for number, line in enumerate(lines) if number not in numbers)


def node_of(*texts: str) -> Node:
    """The node that pasted texts make, each read by every source that recognises it, as the program does."""
    evidence = Evidence("pasted")
    evidence.blobs.extend(Blob(f"pasted-{number}.txt", text.encode()) for number, text in enumerate(texts))
    return read_node(evidence).node


READINGS = Path(__file__).parent / "readings"


@cache
def sections_of(kind: str) -> dict[str, dict[str, Any]]:
    """What a file of readings has: its rows by their claims, and `texts`."""
    return tomllib.loads((READINGS / f"{kind}.toml").read_text(encoding="utf-8"))


def text_of(kind: str, name: str) -> str:
    """A text of a file of readings, where a test of more than a reading needs it."""
    return expanded(kind, sections_of(kind)["texts"][name])


def expanded(kind: str, text: str) -> str:
    """A text with those of a file of readings where their names stand in braces."""
    return within(text, sections_of(kind).get("texts", {}))
