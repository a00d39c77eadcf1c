"""What the sources read of a text: the facts of each device, in the words of the model, and what they leave.

The texts are rows of `readings/KIND.toml`, one file a source, each under its claim. A row has a `text`, in which
`{NAME}` is that one of the file's `[texts]`, or is `of` one of them, or a `file` of those
that are mutated, perhaps with some words `replaced` by others. A
row that is `filled` with a list of values is one for each, which stands for `{}`. `argv` is the command that a capture
ran, `name` that of the file. Devices are named as `os`, `gpu 1`, `pci 0000:16:00.0` and `nic mlx5_0, port 1`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.evidence.filled import (
    READINGS,
    device,
    drop_lines,
    expanded,
    label,
    node_of,
    read,
    recognises,
    sections_of,
    text_of,
    value,
    values,
    why,
)
from tests.shown import ROOT
from tests.tables import edited, examples, parts
from topodiag.evidence import registry
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.intake.kind_of_file import FileKind
from topodiag.evidence.intake.survey import survey
from topodiag.evidence.interface import Blob, Item, Parsed, Source
from topodiag.evidence.kinds import Kind
from topodiag.evidence.registry import possible
from topodiag.model.devices import NetDev, Nic, NicPort
from topodiag.model.node import Node
from topodiag.words.unfilled import is_unfilled

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
        for claim, section in sections_of(path.stem).items():
            if claim == "texts":
                continue
            row = dict(section)
            assert row.keys() <= COLUMNS | GIVEN, f"{path.stem}: {claim}"
            assert row.keys() & COLUMNS, f"{path.stem}: {claim} says nothing"
            for word in row.pop("filled", [None]):
                name = f"{path.stem}: {claim}" + ("" if word is None else f" [{word[:40]}]")
                assert name not in table, name
                table[name] = (path.stem, row | {"text": filled(path.stem, row, word)})
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
    for column, part in wanted.items():
        if column in table:
            shown[column] = table[column]
        elif column == "devices":
            shown[column] = {each: len(list(draft.entities(each))) for each in part}
        elif column in {"draft", "read"}:
            shown[column] = plain(parts(draft if column == "draft" else parsed.records, part))
        elif column == "each":
            shown[column] = {kind: each_of(draft, kind, own) for kind, own in part.items()}
        elif column == "pairs":
            shown[column] = {each: words(draft, each) for each in part}
        elif column == "node":
            shown[column] = of_node(node_of(text), part)
        else:
            shown[column] = {each: said(device(draft, each), column, own) for each, own in part.items()}
    assert shown == wanted
    assert json.dumps(shown, sort_keys=True) == json.dumps(wanted, sort_keys=True), "equal, and of another type"
    assert "recognised" not in row or recognises(kind, text) is row["recognised"]


# --- What a bad value, a missing line and a document of another shape cost in the text of any source: themselves
# alone


JUNK = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="|\\"), max_size=30)
Facts = dict[tuple[str, str], Any]


def facts(draft: NodeDraft) -> Facts:
    """All values of a draft, by the device and the name of the field or counter."""

    def of(label: str, entity: Entity) -> Iterator[tuple[tuple[str, str], Any]]:
        yield from (((label, name), own) for name, own in values(entity).items())
        for (kind, number), child in entity.children.items():
            yield from of(f"{label}, {kind} {number}", child)

    devices = [(f"{kind} {entity.keys}", entity) for kind, entity in draft.all_entities()]
    return {key: own for label, entity in [*devices, *draft.singles.items()] for key, own in of(label, entity)}


def changed(before: Facts, after: Facts) -> list[tuple[str, str]]:
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


@given(junk=JUNK)
@examples("kind", "of", "value", "fields")
def test_a_bad_value_costs_that_value_alone(kind: str, of: str, value: str, fields: list[str], junk: str) -> None:
    """The value stands in brackets among the words around it."""
    assume(not is_unfilled(junk))  # a line with a place like %s is a program's text
    text = text_of(kind, of)
    head, whole, tail = text.partition(value.replace("[", "").replace("]", ""))
    assert whole, f"{value} is not in the text"
    bad = value[: value.index("[")] + junk + value[value.index("]") + 1 :]
    lost = changed(facts(read(kind, text)[0]), facts(read(kind, head + bad + tail)[0]))
    assert {name for _, name in lost} <= set(fields)
    assert len({device for device, _ in lost}) <= 1


@pytest.mark.parametrize("margin", ["> ", "    ", "| ", "\t"])
@pytest.mark.parametrize(("kind", "of"), [("ibstatus", "TEXT"), ("nvidia-smi-q", "REPORT")])
def test_a_quoted_paste_reads_the_same(kind: str, of: str, margin: str) -> None:
    text = text_of(kind, of)
    quoted = "".join(f"{margin}{line}\n" for line in text.split("\n"))
    assert recognises(kind, quoted)
    assert facts(read(kind, quoted)[0]) == facts(read(kind, text)[0])


@examples("kind", "of", "start", "bad", "subject", "fields")
def test_a_value_that_is_none_is_unknown_with_a_reason_and_costs_no_other(
    *, kind: str, of: str, start: str, bad: str, subject: str, fields: list[str]
) -> None:
    text = text_of(kind, of)
    lines = [start + bad if line.startswith(start) else line for line in text.splitlines()]
    good, (draft, parsed) = read(kind, text)[0], read(kind, "\n".join(lines))
    assert value(device(draft, subject), fields[0]) is None
    assert why(device(draft, subject), fields[0])
    assert parsed.unread_count == 1
    assert {name for _, name in changed(facts(good), facts(draft))} == set(fields)


@given(data=st.data())
@examples("kind", "of", "but")
def test_missing_lines_cost_only_their_own_facts(kind: str, of: str, but: list[str], data: st.DataObject) -> None:
    """Other values `but` of these fields, which count what there is."""
    text = text_of(kind, of)
    gone = data.draw(st.sets(st.integers(0, text.count("\n"))))
    whole, left = facts(read(kind, text)[0]), facts(read(kind, drop_lines(text, gone))[0])
    assert {key for key in left if left[key] not in (None, whole.get(key)) and key[1] not in but} == set()


@given(data=st.data(), cut=st.integers(0, 60))
@examples("kind", "of")
def test_lines_in_any_order_and_cut_off_name_no_other_device(kind: str, of: str, data: st.DataObject, cut: int) -> None:
    """A name that is cut itself is one more: nobody knows that it was longer."""
    text = text_of(kind, of)
    lines = data.draw(st.lists(st.sampled_from(text.splitlines(keepends=True)), max_size=60))
    named = {repr(entity.keys) for _, entity in read(kind, "".join(lines)[: -cut or None])[0].all_entities()}
    whole = {repr(entity.keys) for _, entity in read(kind, text)[0].all_entities()}
    assert len(named) <= len(whole) + (cut > 0)


@given(data=st.data())
@examples("kind", "form", "keys")
def test_no_document_makes_a_reader_fail(kind: str, form: str, keys: list[str], data: st.DataObject) -> None:
    """A document of the reader's own keys stands in the form's place."""
    scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=9)
    shapes = st.recursive(
        scalars, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(keys), inner), max_leaves=20
    )
    read(kind, form.replace("{}", json.dumps(data.draw(shapes))))


@pytest.mark.parametrize(("kind", "device"), [("sys-infiniband", "nic"), ("sys-net", "netdev")])
def test_every_offer_is_a_field_of_the_model(kind: str, device: str) -> None:
    fields = {"nic": set(Nic.__slots__), "port": set(NicPort.__slots__), "netdev": set(NetDev.__slots__)}
    for entity in read(kind, text_of(kind, "WHOLE"))[0].entities(device):
        assert entity.offers.keys() <= fields[device]
        assert all(child.offers.keys() <= fields[part] for (part, _), child in entity.children.items())


# --- Literals of formats: a text that a source recognises holds one of them, so that it is asked


WITH_HEADS = {
    kind
    for kind, source in registry.SOURCES.items()
    if "heads" in source
    and (source.keys() & {"looks", "shows"} or type(registry.source(kind)).recognises is not Source.recognises)
}
"""Sources that know their texts by themselves, too."""
FIELD = sorted((ROOT / "fixtures" / "field").glob("*.json"))


def seeds(path: Path) -> list[str]:
    return [Blob("", given["text"].encode()).text for given in json.loads(path.read_text())["inputs"]]


@pytest.mark.parametrize("part", range(8))
def test_each_text_of_the_field_holds_a_literal_of_every_source_that_recognises_it(part: int) -> None:
    missed = [
        (path.stem, kind)
        for path in FIELD[part::8]
        for text in seeds(path)
        for kind in WITH_HEADS - possible(text.encode())
        if (source := registry.source(kind)) is not None and source.recognises(text[: registry.HEAD_CHARS])
    ]
    assert missed == []


KEYS = {"looks", "shows",
    "reads", "topics", "trust", "a_piece", "quiet_is_news", "separate", "maker", "measured", "words", "heads", "front",
}  # fmt: skip


def test_each_source_says_what_it_reads() -> None:
    assert all(set(source) <= KEYS for source in registry.SOURCES.values())
    assert all(registry.source(kind) is not None for kind in registry.SOURCES)


def test_lines_like_those_of_a_source_of_fronts_say_nothing_in_the_middle_of_a_text() -> None:
    row = '{"component":"nccl","health":"Healthy"}\n'
    assert registry.recognise(row)
    talk = "a line of talk that says nothing\n" * 4000
    seen = FileKind((Kind.TEXT,))
    assert survey([(talk + row + talk).encode()], "x", seen) == seen


def test_a_text_without_any_literal_asks_for_no_source() -> None:
    assert possible(b"lorem ipsum\n" * 10) == frozenset()
