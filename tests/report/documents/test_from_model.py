"""Documents are read from the model by the names of their keys; what the model does not know is null or left out."""

from __future__ import annotations

from enum import Enum, IntEnum
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from msgspec import UNSET, Struct, UnsetType

from topodiag.model.provenance import known, unknown
from topodiag.report.documents.from_model import Of, from_model


class State(Enum):
    UP = "link up"


class Level(IntEnum):
    LOW = 1


class Part(Struct, frozen=True, kw_only=True):
    name: Annotated[str, Of("run.id")]
    size: int


class Sample(Struct, frozen=True, kw_only=True):
    text: str = ""
    level: str = ""
    number: int = 0
    maybe: str | None = None
    rank: int | None = None
    rail: int | UnsetType = UNSET
    line: Annotated[int | None, Of("origin.line")] = None
    parts: list[Part] = []
    counts: dict[str, int] = {}


EMPTY: dict[str, Any] = {
    **dict.fromkeys(("text", "level", "maybe"), ""),
    **dict.fromkeys(("number", "rank", "rail"), 0),
    "origin": None,
    "parts": (),
    "counts": (),
}


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("text", "GPU0", "GPU0"),
        ("text", State.UP, "link up"),
        ("text", known("H100"), "H100"),
        ("level", Level.LOW, "low"),
        ("number", Level.LOW, 1),
        ("number", -1, -1),
        ("maybe", "", None),
        ("maybe", None, None),
        ("maybe", unknown("not read"), None),
        ("maybe", known(""), ""),
        ("rank", -1, None),
        ("rank", 0, 0),
        ("rank", known(-1), -1),
        ("rail", -1, UNSET),
        ("rail", 3, 3),
        ("counts", (("a", 1),), {"a": 1}),
        ("parts", [SimpleNamespace(run=SimpleNamespace(id="r1"), size=2)], [Part(name="r1", size=2)]),
        ("parts", [("r1", 2)], [Part(name="r1", size=2)]),
        ("parts", (Part(name="r1", size=2),), [Part(name="r1", size=2)]),
    ],
)  # fmt: skip
def test_a_key_is_the_attribute_of_its_name(key: str, value: object, read: object) -> None:
    made = from_model(Sample, SimpleNamespace(**EMPTY | {key: value}))
    assert getattr(made, key) == read
    assert getattr(from_model(Sample, SimpleNamespace(**EMPTY), **{key: value}), key) == read


@pytest.mark.parametrize(("origin", "line"), [(None, None), (SimpleNamespace(line=7), 7)])
def test_a_path_ends_where_there_is_nothing(origin: object, line: int | None) -> None:
    assert from_model(Sample, SimpleNamespace(**EMPTY | {"origin": origin})).line == line


def test_a_missing_attribute_and_a_key_that_is_none_are_errors() -> None:
    with pytest.raises(AttributeError, match="size"):
        from_model(Part, SimpleNamespace(run=SimpleNamespace(id="r1")))
    with pytest.raises(TypeError, match="Part has no key sise"):
        from_model(Part, ("r1", 2), sise=3)
    with pytest.raises(ValueError, match="shorter"):
        from_model(Part, ("r1",))
