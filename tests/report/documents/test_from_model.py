"""Documents are read from the model by the names of their keys; what the model does not know is null or left out."""

from collections.abc import Iterator
from enum import Enum, IntEnum
from types import SimpleNamespace
from typing import Any

import pytest

from topodiag.model.provenance import Fact, known
from topodiag.report.documents import from_model as documents
from topodiag.report.documents.from_model import from_model


class State(Enum):
    UP = "link up"


class Level(IntEnum):
    LOW = 1


SAMPLE = {
    "Part": {"properties": {"name": {"type": "string"}, "size": {"type": "integer"}}, "required": ["name", "size"]},
    "Sample": {
        "properties": {
            "text": {"type": "string"},
            "level": {"enum": ["low"]},
            "number": {"type": "integer"},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "rank": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "rail": {"type": "integer"},
            "line": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "required": ["text", "level", "number", "maybe", "rank", "line", "parts", "counts"],
    },
}


@pytest.fixture(autouse=True)
def _published(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A schema `test` of these definitions."""
    documents._keys_of.cache_clear()
    monkeypatch.setattr(documents, "schema", {"test": {"$defs": SAMPLE}}.__getitem__)
    renamed = {"Part": {"name": "run.id"}, "Sample": {"line": "origin.line"}}
    monkeypatch.setattr(documents, "own_data", lambda _: renamed)
    yield
    documents._keys_of.cache_clear()


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
        ("maybe", Fact(why="not read"), None),
        ("maybe", known(""), ""),
        ("rank", -1, None),
        ("rank", 0, 0),
        ("rank", known(-1), -1),
        ("rail", 3, 3),
        ("counts", (("a", 1),), {"a": 1}),
        ("parts", [SimpleNamespace(run=SimpleNamespace(id="r1"), size=2)], [{"name": "r1", "size": 2}]),
        ("parts", [("r1", 2)], [{"name": "r1", "size": 2}]),
        ("parts", ({"name": "r1", "size": 2},), [{"name": "r1", "size": 2}]),
    ],
)  # fmt: skip
def test_a_key_is_the_attribute_of_its_name(key: str, value: object, read: object) -> None:
    document = from_model("test.Sample", SimpleNamespace(**EMPTY | {key: value}))
    assert document.get(key) == read
    assert from_model("test.Sample", SimpleNamespace(**EMPTY), **{key: value}).get(key) == read


def test_a_key_that_may_be_left_out_is_where_its_value_is_not_known() -> None:
    assert "rail" not in from_model("test.Sample", SimpleNamespace(**EMPTY | {"rail": -1}))


@pytest.mark.parametrize(("origin", "line"), [(None, None), (SimpleNamespace(line=7), 7)])
def test_a_path_ends_where_there_is_nothing(origin: object, line: int | None) -> None:
    assert from_model("test.Sample", SimpleNamespace(**EMPTY | {"origin": origin}))["line"] == line


def test_a_missing_attribute_and_a_key_that_is_none_are_errors() -> None:
    with pytest.raises(AttributeError, match="size"):
        from_model("test.Part", SimpleNamespace(run=SimpleNamespace(id="r1")))
    with pytest.raises(TypeError, match=r"test\.Part has no key sise"):
        from_model("test.Part", ("r1", 2), sise=3)
    with pytest.raises(ValueError, match="shorter"):
        from_model("test.Part", ("r1",))
