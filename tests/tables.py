"""Examples as rows of a table: the TOML file beside a module of tests, with a section for each test that reads it."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import pytest

from topodiag.model.provenance import Fact

_Test = TypeVar("_Test", bound=Callable[..., None])


def examples(*columns: str) -> Callable[[_Test], _Test]:
    """Run a test once for each row of its section, which bears the test's name without `test_`.

    A section holds `rows`, or each row under the claim that it shows, which becomes its id. A row is the value of one
    column, a list in the order of the columns, or a table by their names, in which a missing one is None. Values
    become what the test's annotations say: tuples, bytes, paths, members of enums by name, values by their fields.
    """

    def decorated(test: _Test) -> _Test:
        section = _sections(test.__globals__["__file__"])[test.__name__.removeprefix("test_")]
        kinds = get_type_hints(test)
        unnamed = section.keys() == {"rows"}
        given = [_row(raw, columns) for raw in (section["rows"] if unnamed else section.values())]
        values = [[_value(raw, kinds.get(name)) for raw, name in zip(row, columns, strict=True)] for row in given]
        return pytest.mark.parametrize(columns, values, ids=None if unnamed else list(section))(test)

    return decorated


def texts(module: str) -> dict[str, Any]:
    """The section `texts` of the file beside a module, which gives its `__file__`: inputs that several tests read."""
    return _sections(module)["texts"]


def with_texts(text: str, module: str) -> str:
    """A text of a row with those of `texts` where their names stand in braces, in these again."""
    return within(text, texts(module))


def edited(text: str, replaced: Mapping[str, str] | None) -> str:
    """A text with some words replaced by others; they must be there."""
    for old, new in (replaced or {}).items():
        assert old in text, f"{old!r} is not in the text"
        text = text.replace(old, new)
    return text


def within(text: str, named: Mapping[str, str]) -> str:
    """A text with others where their names stand in braces, in these again."""
    for name, part in named.items():
        if f"{{{name}}}" in text:
            text = text.replace(f"{{{name}}}", within(part, named))
    return text


def rows(module: str, test: str) -> list[Any]:
    """The rows of a test's section, as they stand, for a test of the table."""
    return _sections(module)[test]["rows"]


def parts(value: Any, wanted: Any, *, whole: bool = False) -> Any:
    """What a value has where a row says what it should have: fields by their names, each item of a list or an array,
    members of enums by their names, the value of a fact; keys of a mapping are spelt as texts, a pair "a b", and with
    `whole` all of them count. TOML spells None out as "null"."""
    if isinstance(value, Fact) and not isinstance(wanted, dict):
        return parts(value.value, wanted, whole=whole)
    if isinstance(wanted, dict) and isinstance(value, Mapping):
        fields = {_spelt(key): item for key, item in value.items()}
        return {name: parts(fields.get(name), wanted.get(name), whole=whole) for name in (fields if whole else wanted)}
    if isinstance(wanted, dict):
        return {name: parts(getattr(value, name), item, whole=whole) for name, item in wanted.items()}
    if isinstance(wanted, list) and hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(wanted, list) and isinstance(value, list | tuple) and len(value) == len(wanted):
        return [parts(item, part, whole=whole) for item, part in zip(value, wanted, strict=True)]
    if isinstance(value, Enum):
        return value.name
    return "null" if value is None else value


def _spelt(key: Any) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)


@cache
def _sections(module: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))


def _row(raw: Any, columns: tuple[str, ...]) -> list[Any]:
    if len(columns) == 1:
        return [raw]
    if isinstance(raw, dict):
        assert raw.keys() <= set(columns), f"{raw.keys() - set(columns)} is no column"
        return [raw.get(name) for name in columns]
    return raw


def _value(raw: Any, kind: Any) -> Any:
    """A value of the file as the annotation has it."""
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if isinstance(kind, UnionType):
        kinds = [each for each in inner if each is not type(None)]
        return _value(raw, kinds[0]) if len(kinds) == 1 and raw is not None else raw
    if isinstance(raw, str) and isinstance(kind, type):
        if issubclass(kind, Enum):
            return kind[raw]
        return raw.encode() if kind is bytes else Path(raw) if kind is Path else raw
    if isinstance(raw, list) and origin is tuple and inner and ... not in inner:
        return tuple(map(_value, raw, inner))
    if isinstance(raw, list) and origin in {list, tuple, set, frozenset}:
        return origin(_value(each, inner[0]) if inner else each for each in raw)
    if isinstance(raw, dict) and is_dataclass(kind):
        kinds = get_type_hints(kind)
        return kind(**{name: _value(each, kinds[name]) for name, each in raw.items()})
    if isinstance(raw, dict) and origin is dict and inner:
        return {_value(key, inner[0]): _value(each, inner[1]) for key, each in raw.items()}
    return raw
