"""What a bad value, a missing line and a document of another shape cost in the text of any source: themselves alone.

The texts are those of the sources' tables of readings.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.evidence.filled import device, drop_lines, read, recognises, text_of, value, values, why
from tests.tables import examples
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.model.devices import NetDev, Nic, NicPort
from topodiag.words.unfilled import is_unfilled

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
