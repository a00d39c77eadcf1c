"""Documents read from values of the model by the published schemas, schema/*.schema.json: a key is the attribute of its
name, or the one that read_from.toml names; and documents as JSON text: pure ASCII, so that any terminal encoding
carries it, and never NaN or an infinity.

Texts, numbers and flags stand as they are, a fact as its value, a member of an enumeration as its word, or as its
number where the key is one. An empty text and a negative whole number that are no facts mean "not known" in the model:
where a key may be null they are null, and where it may be left out it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from importlib.resources import files
from numbers import Integral
from typing import Any, TextIO

import msgspec

from topodiag.model.provenance import Fact
from topodiag.version import __version__
from topodiag.words.own_data import own_data

Document = dict[str, Any]
"""A document, or a part of one: its keys in the order of the schema."""
Convert = Callable[[Any], Any]
_LEFT_OUT = object()
READ_FROM = "report/documents/read_from"
VERSIONS = {
    "diagnose": "2.0", "result": "1.0", "predict": "1.0", "what-if": "1.0", "diff": "1.0", "model": "1.0",
    "place": "1.0", "fleet": "1.0", "collect": "1.0", "sweep": "1.0", "history": "1.0",
}  # fmt: skip
"""major.minor of each schema: a minor adds keys, a major may change or remove them. Major 2 of a diagnosis has no
`verdict.leads`."""


UNITS: dict[str, Convert] = {
    "ms": lambda us: [one / 1000 for one in us] if isinstance(us, tuple) else us / 1000,
    "percent": lambda share: 100 * share,
    "count": len,
}
"""What a value is told in, by the words behind a path."""


@cache
def schema(name: str) -> Document:
    """A published schema by its name, such as `result`."""
    text = (files("topodiag.report") / "schema" / f"{name}-{VERSIONS[name]}.schema.json").read_bytes()
    read: Document = msgspec.json.decode(text)
    return read


def document_of(shape: str, value: object, **given: Any) -> Document:
    """A whole document, as `from_model` reads a part. It has the version of its schema and the program, and the inputs,
    findings and gaps that are given or that the value has."""
    shared = {
        "schema_version": VERSIONS[shape.partition(".")[0]],
        "tool": {"name": "topodiag", "version": __version__},
        **{key: getattr(value, key, ()) for key in ("inputs", "findings", "not_observed")},
    }
    return from_model(shape, value, **shared | given)


def from_model(shape: str, value: object, **given: Any) -> Document:
    """The part of a document that `shape` describes, a schema and its definition: `result.Node`. `given` are the keys
    that the value has no attribute for, or values of the model themselves; a plain tuple has its items in the order of
    the keys. Raises TypeError for a key that the schema has not."""
    keys = _keys_of(shape)
    if type(value) is tuple:
        given |= zip((name for name, _, _ in keys), value, strict=True)
    parts = {name: convert(given.pop(name) if name in given else read(value)) for name, read, convert in keys}
    if given:
        raise TypeError(f"{shape} has no key {', '.join(given)}")
    return {name: part for name, part in parts.items() if part is not _LEFT_OUT}


@cache
def _keys_of(shape: str) -> list[tuple[str, Convert, Convert]]:
    """Of each key: its name, how it is read from a value of the model, and how what was read becomes a part."""
    name, _, definition = shape.partition(".")
    described, paths = schema(name)["$defs"][definition], own_data(READ_FROM).get(definition, {})
    return [
        (key, reading(paths.get(key, key)), _converting(name, hint, key in described["required"]))
        for key, hint in described["properties"].items()
    ]


def reading(path: str) -> Convert:
    """What reads the attribute or the key at a path, such as `evidence.0.line`: None behind one that is None, or is not
    there in a list. `step_us in ms` is a time in milliseconds, `gain in percent` a share in per cent,
    `findings in count` how many there are."""
    path, _, unit = path.partition(" in ")
    if unit:
        read_plain, spell = reading(path), UNITS[unit]
        return lambda value: spell(read_plain(value))
    steps = path.split(".")
    if len(steps) == 1:
        return lambda value: value[path] if isinstance(value, dict) else getattr(value, path)

    def read(value: Any) -> Any:
        for step in steps:
            if isinstance(value, Mapping):
                value = value[step]
            elif step.isdecimal():
                value = value[int(step)] if value and int(step) < len(value) else None
            elif value is not None:
                value = getattr(value, step)
        return value

    return read


def _converting(name: str, hint: Document, required: bool = True) -> Convert:
    """How a value becomes what a property of the schema of this name describes."""
    if not required:
        convert = _converting(name, hint)
        return lambda value: _value(convert, value, _LEFT_OUT)
    if "anyOf" in hint:
        convert = _converting(name, next(kind for kind in hint["anyOf"] if kind != {"type": "null"}))
        return lambda value: _value(convert, value, None)
    if "$ref" in hint:
        shape = f"{name}.{hint['$ref'].rpartition('/')[2]}"
        return lambda value: value if isinstance(value, dict) else from_model(shape, value)
    if hint.get("type") == "array" and isinstance(hint.get("items"), dict):
        convert = _converting(name, hint["items"])
        return lambda values: [convert(value) for value in values]
    if isinstance(hint.get("additionalProperties"), dict):
        convert = _converting(name, hint["additionalProperties"])
        return lambda values: {key: convert(value) for key, value in dict(values).items()}
    return _number if hint.get("type") == "integer" else plain_value


def _value(convert: Convert, value: Any, unknown: Any) -> Any:
    """The value, or `unknown` for one that says so itself. A fact that is known is what was read, whatever it is."""
    if isinstance(value, Fact):
        return unknown if value.value is None else convert(value.value)
    if value is None or (isinstance(value, str) and not value) or (isinstance(value, Integral) and value < 0):
        return unknown
    return convert(value)


def _number(value: Any) -> Any:
    return value.value if isinstance(value, Fact) else value


def plain_value(value: Any) -> Any:
    """A fact as its value, a member of an enumeration as its word."""
    value = _number(value)
    if isinstance(value, Enum):
        return value.name.lower() if isinstance(value, int) else value.value
    return value


RESULT_INDENT = 2
PAGE_INDENT = 1
"""Of documents that stand beside a page: a map or a tuning table has many short lines."""


def write_json(document: Document, stream: TextIO, indent: int = PAGE_INDENT) -> None:
    """The document as one object, with a line end."""
    json.dump(plain(document), stream, indent=indent, ensure_ascii=True, allow_nan=False)
    stream.write("\n")


def plain(document: Document) -> Document:
    """The document as dictionaries, lists and numbers that JSON has words for."""
    plain_values: Document = _finite(msgspec.to_builtins(document, str_keys=True, enc_hook=_of_numpy))
    return plain_values


def _finite(value: Any) -> Any:
    """The value with NaN and infinities, which JSON has no word for, as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def _of_numpy(value: Any) -> float | int | bool:
    """A number of numpy as Python's own."""
    number: float | int | bool = value.item()
    return number
