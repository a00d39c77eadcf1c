"""Tables of examples: each section is read, and what its rows become."""

import ast
import tomllib
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import tables
from tests.shown import ROOT
from topodiag.model.provenance import Fact, known

FILES = sorted(path for path in (ROOT / "tests").rglob("test_*.toml") if path.with_suffix(".py").exists())


class Colour(Enum):
    RED = "red"


def read_by(module: Path) -> set[str]:
    """The sections that the tests of a module read."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    names = {
        test.name.removeprefix("test_")
        for test in tree.body
        if isinstance(test, ast.FunctionDef) and any("examples(" in ast.unparse(expr) for expr in test.decorator_list)
    }
    calls = any(
        isinstance(call, ast.Call) and ast.unparse(call.func) in {"texts", "with_texts"} for call in ast.walk(tree)
    )
    return names | {"texts"} if calls else names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_section_is_read_by_the_test_that_bears_its_name(path: Path) -> None:
    assert tomllib.loads(path.read_text(encoding="utf-8")).keys() == read_by(path.with_suffix(".py"))


@pytest.mark.parametrize(
    ("raw", "kind", "value"),
    [
        (["a", "b"], tuple[str, ...], ("a", "b")),
        ([["a", 1]], list[tuple[str, int]], [("a", 1)]),
        (["a", "b"], set[str], {"a", "b"}),
        ([1, ["a"]], tuple[int, list[str]], (1, ["a"])),
        ("RED", Colour, Colour.RED),
        ("RED", Colour | None, Colour.RED),
        ({"a": ["RED"]}, dict[str, tuple[Colour, ...]], {"a": (Colour.RED,)}),
        ("a", bytes, b"a"),
        ("a/b", Path, Path("a/b")),
        ([1], Any, [1]),
        (None, tuple[str, ...] | None, None),
    ],
)
def test_a_value_is_of_the_kind_that_the_test_says(raw: Any, kind: Any, value: Any) -> None:
    assert tables._value(raw, kind) == value


def test_a_row_gives_its_columns_in_order_or_by_name_and_names_no_other() -> None:
    assert tables._row(["a", 1], ("text", "count")) == ["a", 1]
    assert tables._row({"count": 1}, ("text", "count")) == [None, 1]
    assert tables._row({"text": "a"}, ("found",)) == [{"text": "a"}]
    with pytest.raises(AssertionError, match="'cuont'} is no column"):
        tables._row({"cuont": 1}, ("text", "count"))


def test_words_that_a_text_has_are_replaced_and_others_are_a_mistake() -> None:
    assert tables.edited("a b", {"a": "b", "b": "c"}) == "c c"
    with pytest.raises(AssertionError, match="'d' is not in the text"):
        tables.edited("a b", {"d": ""})


def test_the_parts_of_a_value_are_those_that_a_row_asks_for() -> None:
    value = {"colour": Colour.RED, "sizes": (1, 2), "why": None, "more": 3}
    assert tables.parts(value, {"colour": "RED", "sizes": [1, 9], "why": "null"}) == {
        "colour": "RED", "sizes": [1, 2], "why": "null",
    }  # fmt: skip
    assert tables.parts(Path("a/b"), {"name": "?"}) == {"name": "b"}
    assert tables.parts((1, 2), [1]) == (1, 2)
    assert tables.parts({"a": known(3), "b": Fact(why="?")}, {"a": 3, "b": "null"}) == {"a": 3, "b": "null"}
    assert tables.parts(Fact(why="not there"), {"why": ""}) == {"why": "not there"}
    assert tables.parts({3: 1, ("a", "b"): 2, 4: 5}, {"3": 1, "a b": 2}) == {"3": 1, "a b": 2}
    assert tables.parts({3: 1, 4: 5}, {"3": 1}, whole=True) == {"3": 1, "4": 5}
    assert tables.parts({"groups": np.asarray([1, 2])}, {"groups": [1, 9]}) == {"groups": [1, 2]}
