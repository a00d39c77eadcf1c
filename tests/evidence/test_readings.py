"""What the sources read of a text: the facts of each device, in the words of the model, and what they leave.

The texts are rows of `readings/KIND.toml`, one file a source, each under its claim. A row has a `text`, in which
`{NAME}` is that one of the file's `[texts]`, or is `of` one of them, or a `file` of those
that are mutated, perhaps with some words `replaced` by others. A
row that is `filled` with a list of values is one for each, which stands for `{}`. `argv` is the command that a capture
ran, `name` that of the file. Devices are named as `os`, `gpu 1`, `pci 0000:16:00.0` and `nic mlx5_0, port 1`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evidence.filled import READINGS, device, expanded, label, node_of, recognises, sections_of, text_of, values
from tests.tables import edited, parts
from topodiag.evidence import registry
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob, Item, Parsed
from topodiag.model.node import Node

COLUMNS = {
    "recognised", "kinds", "devices", "keys", "facts", "counters", "whole", "whole_counters", "unknown", "unsaid",
    "why", "line", "quoted", "unread", "unread_lines", "unread_why", "records", "missing", "missing_why", "pairs",
    "parts", "node", "each", "draft", "read",
}  # fmt: skip
"""What a row can say. Whether the source recognises the text, and all that do (`kinds`). How many `devices` of a kind
there are. Of each: the keys that name it, values among its facts or its counters, or all of them (`whole`), and the
facts that have no value (`unknown`) or are not spoken of (`unsaid`), with the reason, the line that a fact is from and
its words, and its `parts` by their names. Of `each` device of a kind, in their order: some keys, facts or counters, or
"null". Of the whole text: how many lines were not read, which and why, how many records it has, what is missing; some
fields of what was `read` and of the `draft`; the words of the `pairs` of a table, all of them; and what the `node` has
that the program makes of the text, read by every source that knows it, with all words of its `smi_matrix` and its
`copies`."""
SEEDS = Path(__file__).parents[1] / "fuzz" / "texts"
GIVEN = {"text", "of", "replaced", "filled", "argv", "name", "file"}


def rows() -> dict[str, tuple[str, dict[str, Any]]]:
    """The rows of all files by source and claim, each with its source's kind and its text."""
    table = {}
    for path in sorted(READINGS.glob("*.toml")):
        for claim, given in sections_of(path.stem).items():
            if claim == "texts":
                continue
            row = dict(given)
            assert row.keys() <= COLUMNS | GIVEN, f"{path.stem}: {claim}"
            assert row.keys() & COLUMNS, f"{path.stem}: {claim} says nothing"
            for value in row.pop("filled", [None]):
                name = f"{path.stem}: {claim}" + ("" if value is None else f" [{value[:40]}]")
                assert name not in table, name
                table[name] = (path.stem, row | {"text": filled(path.stem, row, value)})
    return table


def filled(kind: str, row: dict[str, Any], value: str | None) -> str:
    """The text of a row, with one of its values."""
    if "file" in row:
        text = (SEEDS / row["file"]).read_text(encoding="utf-8")
    else:
        text = text_of(kind, row["of"]) if "of" in row else expanded(kind, row["text"])
    text = edited(text, row.get("replaced"))
    assert value is None or "{}" in text, f"{kind}: no place for {value}"
    return text if value is None else text.replace("{}", value)


ROWS = rows()


def plain(value: Any) -> Any:
    """A value as TOML has it."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def first(entity: Entity, name: str) -> Any:
    """The first value that is offered for a fact; there must be one."""
    values = [offer.value for offer in entity.offers.get(name, ()) if offer.value is not None]
    assert values, f"{name} has no value"
    return plain(values[0])


def shown_by(entity: Entity, wanted: dict[str, Any]) -> dict[str, Any]:
    """Values of a device, be they facts, counters or keys."""
    table = entity.keys | {name: plain(offered) for name, offered in values(entity).items() if offered is not None}
    return {name: table.get(name, "null") for name in wanted}


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
        case "parts":
            return [f"{kind} {number}" for kind, number in entity.children]
        case "why":
            return {name: next(offer.why for offer in offers[name] if offer.value is None) for name in wanted}
    places = {name: (offers.get(name) or counters[name])[0].origin for name in wanted}
    return {name: place.line if column == "line" else place.text for name, place in places.items()}


def each_of(draft: NodeDraft, kind: str, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    entities = list(draft.entities(kind))
    assert len(entities) == len(wanted), kind
    return [shown_by(*pair) for pair in zip(entities, wanted, strict=True)]


def words(draft: NodeDraft, table: str) -> dict[str, str]:
    """What a table says of each pair of devices."""
    return {f"{label(pair.a)} {label(pair.b)}": pair.offer.value for pair in draft.pairs if pair.table == table}


def of_node(node: Node, wanted: dict[str, Any]) -> dict[str, Any]:
    """What a node has of the parts that a row names; of its tables of pairs all."""
    tables = {
        name: {" ".join(pair): fact.value for pair, fact in table.items()}
        for name, table in (("smi_matrix", node.smi_matrix), ("copies", node.copies))
    }
    return {
        name: tables[name] if name in tables else plain(parts(getattr(node, name), wanted[name])) for name in wanted
    }


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
    item = Item("captured", kind, "evidence.txt", argv=tuple(row["argv"].split())) if "argv" in row else None
    draft = NodeDraft()
    draft.weight.trust = source.trust
    text = row["text"]
    parsed = source.read(Blob(row.get("name", "evidence.txt"), text.encode(), item), draft)
    wanted = {column: value for column, value in row.items() if column in COLUMNS - {"recognised"}}
    table = of_text(text, parsed, draft)
    shown: dict[str, Any] = {}
    for column, value in wanted.items():
        if column in table:
            shown[column] = table[column]
        elif column == "devices":
            shown[column] = {each: len(list(draft.entities(each))) for each in value}
        elif column in {"draft", "read"}:
            shown[column] = plain(parts(draft if column == "draft" else parsed.records, value))
        elif column == "each":
            shown[column] = {kind: each_of(draft, kind, own) for kind, own in value.items()}
        elif column == "pairs":
            shown[column] = {each: words(draft, each) for each in value}
        elif column == "node":
            shown[column] = of_node(node_of(text), value)
        else:
            shown[column] = {each: said(device(draft, each), column, own) for each, own in value.items()}
    assert shown == wanted
    assert json.dumps(shown, sort_keys=True) == json.dumps(wanted, sort_keys=True), "equal, and of another type"
    assert "recognised" not in row or recognises(kind, text) is row["recognised"]
