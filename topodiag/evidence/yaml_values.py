"""YAML (and with it JSON) as plain values, in bounds: words, numbers, lists and mappings, and an error is one line.

The values are built from the parser's events and counted as they come, so that nothing that a file repeats by aliases
and merge keys is made before it is known how much it is. Tags are not taken: they say which program to build.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from topodiag.evidence.interface import Blob
from topodiag.evidence.json_values import load
from topodiag.lazy import dataclass, regex
from topodiag.model.errors import InputError
from topodiag.words.node_sets import short
from topodiag.words.units import spell_bytes

MAX_BYTES = 64 << 20
MAX_DEPTH = 40
"""Lists in lists: no file of ours nests so deeply, and the parser's own stack is not endless."""
MAX_VALUES = 1 << 23
"""Twice the ranks that a file of groups may name, each written out."""
MAX_REPEATED = 10
"""Times as much as is written that aliases and merge keys may make of a file; the first FREE_VALUES are free. Files of
people repeat a line or two: more is a bomb."""
FREE_VALUES = 10_000
_INT = regex(r"[-+]?(?:0|[1-9][0-9]{0,19})")
_FLOAT = regex(r"[-+]?[0-9]{1,20}\.[0-9]{0,20}(?:[eE][-+]?[0-9]{1,3})?|[-+]?\.[0-9]{1,20}")
"""With its point, as YAML 1.1 has it: `1e3` is a rack or a node more often than a number."""
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_CORE = "tag:yaml.org,2002:"
_TAGS = frozenset({"!", *(f"{_CORE}{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map"))})
_MERGE = "<<"


def load_yaml(blob: Blob) -> Any:
    """The first document. Raises InputError for what is no YAML, and for what is too much of it."""
    if len(blob.data) > MAX_BYTES:
        raise InputError(blob.name, f"is larger than {spell_bytes(MAX_BYTES)}", hint="is it the right file?")
    text = blob.written
    if text.lstrip()[:1] in ("{", "["):
        document, why = load(blob, MAX_BYTES)
        if not why:  # else flow YAML, or nothing at all: the other parser says which
            return document
    import yaml  # noqa: PLC0415 - only for the files that are YAML

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _built(yaml.parse(text, Loader=loader), blob.name)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        problem = getattr(error, "problem", None) or "cannot be parsed"
        deep = "nesting depth" in str(problem)  # PyYAML 6.0.4 and later have a bound of their own
        why = "is nested too deeply" if deep else f"is no YAML: {short(str(problem))}"
        raise InputError(blob.name, why, line=line) from None
    except RecursionError:
        raise InputError(blob.name, "is nested too deeply") from None
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise InputError(blob.name, f"is no YAML: {short(str(error))}") from None


def word(value: object) -> str:
    """A value for an error message. What is no scalar is not written out: aliases can make it endless."""
    return short(str(value)) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"


@dataclass(slots=True)
class _Builder:
    """The events of the parser, values by anchor with their sizes, and how many values were written and made."""

    name: str
    events: Iterator[Any]
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    written: int = 0
    built: int = 0
    line: int = 0

    def refuse(self, why: str) -> InputError:
        return InputError(self.name, why, line=self.line)

    def next(self) -> Any:
        event = next(self.events)
        self.line = event.start_mark.line + 1 if event.start_mark is not None else 0
        tag = getattr(event, "tag", None)
        if tag is not None and tag not in _TAGS:
            raise self.refuse(f"has a tag: {short(tag)!r}")
        return event

    def value(self, event: Any, depth: int = 0) -> tuple[Any, int]:
        """The value that begins with an event, and how many there are in it, those that an alias repeats each time."""
        kind, anchor = type(event).__name__, event.anchor
        if kind == "AliasEvent":
            if anchor not in self.anchors:
                raise self.refuse(f"refers to {short(anchor)!r}, which is not there or not at its end")
            value, size = self.anchors[anchor]
            self.count(size)
            return value, size
        if kind == "ScalarEvent":
            plain = event.implicit[0] or (event.tag or "").removeprefix(_CORE) in ("int", "float", "bool", "null")
            value, size = _scalar(event.value) if plain else event.value, 1
        elif depth >= MAX_DEPTH:
            raise self.refuse("is nested too deeply")
        else:
            self.anchors.pop(anchor, None)  # an alias inside of it would be endless
            value, size = (self.members if kind == "SequenceStartEvent" else self.mapping)(depth + 1)
        self.count(1)
        if anchor is not None:
            self.anchors[anchor] = (value, size)
        return value, size

    def members(self, depth: int) -> tuple[list[Any], int]:
        items, size = list[Any](), 1
        while type(event := self.next()).__name__ != "SequenceEndEvent":
            item, inside = self.value(event, depth)
            items.append(item)
            size += inside
        return items, size

    def mapping(self, depth: int) -> tuple[dict[Any, Any], int]:
        """`<<: *base`, or a list of several, of which the first counts. What the mapping says itself counts more."""
        own, merged, size = dict[Any, Any](), dict[Any, Any](), 1
        while type(event := self.next()).__name__ != "MappingEndEvent":
            key, inside = self.value(event, depth)
            if isinstance(key, list | dict):
                raise self.refuse("has a list or a mapping for a key")
            value, more = self.value(self.next(), depth)
            size += inside + more
            if key != _MERGE:
                own[key] = value
                continue
            for base in value if isinstance(value, list) else [value]:
                if not isinstance(base, dict):
                    raise self.refuse("merges what is no mapping")
                for name, member in base.items():
                    merged.setdefault(name, member)
        return {**merged, **own}, size

    def count(self, new: int) -> None:
        """One value more is written, and so many are made. Raises InputError beyond bounds."""
        self.written += 1
        self.built += new
        if self.built > MAX_VALUES:
            raise self.refuse(f"holds more than {MAX_VALUES} values")
        if self.built > FREE_VALUES + MAX_REPEATED * self.written:
            raise self.refuse(f"repeats itself by aliases to more than {MAX_REPEATED} times what is written")


def _built(events: Iterator[Any], name: str) -> Any:
    """The first document of the parser's events. Raises InputError."""
    builder = _Builder(name, events)
    builder.next()  # of the stream
    if type(builder.next()).__name__ == "StreamEndEvent":
        return None
    document, _ = builder.value(builder.next())
    builder.next()  # what is wrong behind it
    return document


def _scalar(text: str) -> Any:
    """A word as null, a truth value, a number of a sane length, or itself. A number with a leading zero is a word: it
    is part of a name more often than it is octal."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else text
    return text
