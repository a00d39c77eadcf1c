"""YAML (and with it JSON) as plain values, in bounds: words, numbers, lists and mappings, and an error is one line.

The values are built from the parser's events and counted as they come, so that nothing that a file repeats by aliases
and merge keys is made before it is known how much it is. Tags are not taken: they say which program to build.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
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
    text = blob.text
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
class _Open:
    """A list or a mapping that has not ended. `size`: values in it, those that an alias repeats each time."""

    made: list[Any] | dict[Any, Any]
    anchor: str | None
    size: int = 1
    key: Any = None
    has_key: bool = False
    merged: dict[Any, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Builder:
    """What has been read: open lists and mappings, values by anchor with their sizes, and how many there are."""

    name: str
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    written: int = 0
    made: int = 0
    root: Any = None
    line: int = 0

    def refuse(self, why: str) -> InputError:
        return InputError(self.name, why, line=self.line)

    def open(self, value: list[Any] | dict[Any, Any], anchor: str | None) -> None:
        self.stack.append(_Open(value, anchor))
        if len(self.stack) > MAX_DEPTH:
            raise self.refuse("is nested too deeply")
        if anchor is not None:
            self.anchors.pop(anchor, None)  # an alias inside of it would be endless

    def close(self) -> None:
        ended = self.stack.pop()
        value = ended.made
        if isinstance(value, dict):
            value = {**ended.merged, **value}
        self.put(value, ended.size, ended.anchor, new=1)

    def alias(self, anchor: str) -> None:
        if anchor not in self.anchors:
            raise self.refuse(f"refers to {short(anchor)!r}, which is not there or not at its end")
        value, size = self.anchors[anchor]
        self.put(value, size, None, new=size)

    def put(self, value: Any, size: int, anchor: str | None, *, new: int) -> None:
        """Take a value of `size` values in, of which `new` were not counted before. Raises InputError beyond bounds."""
        self.written += 1
        self.made += new
        if self.made > MAX_VALUES:
            raise self.refuse(f"holds more than {MAX_VALUES} values")
        if self.made > FREE_VALUES + MAX_REPEATED * self.written:
            raise self.refuse(f"repeats itself by aliases to more than {MAX_REPEATED} times what is written")
        if anchor is not None:
            self.anchors[anchor] = (value, size)
        if not self.stack:
            self.root = value
            return
        holder = self.stack[-1]
        holder.size += size
        if isinstance(holder.made, list):
            holder.made.append(value)
        elif not holder.has_key:
            if isinstance(value, list | dict):
                raise self.refuse("has a list or a mapping for a key")
            holder.key, holder.has_key = value, True
        else:
            holder.has_key = False
            if holder.key == _MERGE:
                self.merge(holder, value)
            else:
                holder.made[holder.key] = value

    def merge(self, holder: _Open, value: Any) -> None:
        """`<<: *base`, or a list of several, of which the first counts. What the mapping says itself counts more."""
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                raise self.refuse("merges what is no mapping")
            for key, member in item.items():
                holder.merged.setdefault(key, member)


def _built(events: Iterable[Any], name: str) -> Any:
    """The first document of the parser's events. Raises InputError."""
    builder = _Builder(name)
    for event in events:
        kind = type(event).__name__
        builder.line = event.start_mark.line + 1 if event.start_mark is not None else 0
        tag = getattr(event, "tag", None)
        if tag is not None and tag not in _TAGS:
            raise builder.refuse(f"has a tag: {short(tag)!r}")
        if kind == "ScalarEvent":
            plain = event.implicit[0] or (tag or "").removeprefix(_CORE) in ("int", "float", "bool", "null")
            builder.put(_scalar(event.value) if plain else event.value, 1, event.anchor, new=1)
        elif kind == "AliasEvent":
            builder.alias(event.anchor)
        elif kind == "SequenceStartEvent":
            builder.open([], event.anchor)
        elif kind == "MappingStartEvent":
            builder.open({}, event.anchor)
        elif kind in ("SequenceEndEvent", "MappingEndEvent"):
            builder.close()
        elif kind == "DocumentEndEvent":
            break
    return builder.root


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
