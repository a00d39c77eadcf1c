"""What the sources read of a text: the facts of each device, in the words of the model, and what they leave.

The texts are rows of `readings/KIND.toml`, one file a source, each under its claim. A row has a `text`, or is one of
the file's `[texts]`, `of` that name, perhaps with some words `replaced` by others. Devices are named as `os`, `gpu 1`,
`pci 0000:16:00.0` and `nic mlx5_0, port 1`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.evidence.filled import READINGS, recognises, sections_of, text_of
from topodiag.evidence import registry
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob, Parsed

COLUMNS = {
    "recognised", "kinds", "devices", "keys", "facts", "counters", "whole", "whole_counters", "unknown", "unsaid",
    "why", "line", "quoted", "unread", "unread_lines", "unread_why", "records", "missing", "missing_why",
}  # fmt: skip
"""What a row can say. Whether the source recognises the text, and all that do (`kinds`). How many `devices` of a kind
there are. Of each: the keys that name it, values among its facts or its counters, or all of them (`whole`), and the
facts that have no value (`unknown`) or are not spoken of (`unsaid`), with the reason, the line that a fact is from and
its words. Of the whole text: how many lines were not read, which and why, how many records it has, what is missing."""
SINGLES = {"node", "cpu", "os", "services", "scheduler", "registry"}


def rows() -> dict[str, tuple[str, dict[str, Any]]]:
    """The rows of all files by source and claim, each with its source's kind and its text."""
    table = {}
    for path in sorted(READINGS.glob("*.toml")):
        for claim, given in sections_of(path.stem).items():
            if claim == "texts":
                continue
            row = dict(given)
            if "of" in row:
                row["text"] = text_of(path.stem, row.pop("of"))
                for old, new in row.pop("replaced", {}).items():
                    assert old in row["text"], f"{path.stem}: {claim}"
                    row["text"] = row["text"].replace(old, new)
            assert row.keys() <= COLUMNS | {"text"}, f"{path.stem}: {claim}"
            assert len(row) > 1, f"{path.stem}: {claim} says nothing"
            table[f"{path.stem}: {claim}"] = (path.stem, row)
    return table


ROWS = rows()


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


def plain(value: Any) -> Any:
    """A value as TOML has it."""
    if isinstance(value, frozenset):
        return sorted(value)
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def first(entity: Entity, name: str) -> Any:
    """The first value that is offered for a fact; there must be one."""
    values = [offer.value for offer in entity.offers.get(name, ()) if offer.value is not None]
    assert values, f"{name} has no value"
    return plain(values[0])


def counted(entity: Entity, name: str) -> Any:
    return entity.counters[name][0].value


def said(entity: Entity, column: str, wanted: Any) -> Any:
    """What a device has to hold beside the words of a column."""
    offers, counters = entity.offers, entity.counters
    match column:
        case "keys":
            return entity.keys
        case "facts":
            return {name: first(entity, name) for name in wanted}
        case "counters":
            return {name: counted(entity, name) for name in wanted}
        case "whole":
            return {name: first(entity, name) for name in offers}
        case "whole_counters":
            return {name: counted(entity, name) for name in counters}
        case "unknown":
            return [name for name in wanted if all(offer.value is None for offer in offers.get(name, ()))]
        case "unsaid":
            return [name for name in wanted if name not in offers and name not in counters]
        case "why":
            return {name: next(offer.why for offer in offers[name] if offer.value is None) for name in wanted}
    places = {name: (offers.get(name) or counters[name])[0].origin for name in wanted}
    return {name: place.line if column == "line" else place.text for name, place in places.items()}


def of_text(text: str, parsed: Parsed[Any], draft: NodeDraft) -> dict[str, Any]:
    return {
        "kinds": list(registry.recognise(text)),
        "unread": parsed.unread_count,
        "unread_lines": [line.line for line in parsed.unread],
        "unread_why": [line.why for line in parsed.unread],
        "records": len(parsed.records),
        "missing": [missing.what for missing in draft.missing],
        "missing_why": [missing.why for missing in draft.missing],
    }


@pytest.mark.parametrize("name", ROWS)
def test_a_text_is_read_as_its_row_says(name: str) -> None:
    kind, row = ROWS[name]
    source = registry.source(kind)
    assert source is not None
    draft = NodeDraft()
    draft.trust = source.trust
    parsed = source.read(Blob("evidence.txt", row["text"].encode()), draft)
    wanted = {column: value for column, value in row.items() if column not in {"text", "recognised"}}
    table = of_text(row["text"], parsed, draft)
    shown: dict[str, Any] = {}
    for column, value in wanted.items():
        if column in table:
            shown[column] = table[column]
        elif column == "devices":
            shown[column] = {each: len(list(draft.entities(each))) for each in value}
        else:
            shown[column] = {each: said(device(draft, each), column, words) for each, words in value.items()}
    assert shown == wanted
    assert json.dumps(shown, sort_keys=True) == json.dumps(wanted, sort_keys=True), "equal, and of another type"
    assert "recognised" not in row or recognises(kind, row["text"]) is row["recognised"]
