"""YAML (and with it JSON) as plain values, in bounds: words, numbers, lists and mappings, and an error is one line.

The parser's events are counted before PyYAML's safe loader builds anything of them, so that it is known how much a
file repeats by aliases and merge keys. Tags are not taken: they say which program to build.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from topodiag.evidence.interface import Blob
from topodiag.evidence.json_values import load
from topodiag.lazy import regex
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
_PLAIN = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|yes|Yes|YES|on|On|ON|false|False|FALSE|no|No|NO|off|Off|OFF",
    "int": r"[-+]?(?:0|[1-9][0-9]{0,19})",
    "float": r"[-+]?[0-9]{1,20}\.[0-9]{0,20}(?:[eE][-+]?[0-9]{1,2})?|[-+]?\.[0-9]{1,20}",
    "merge": r"<<",
}
"""What a word without quotes stands for, where not for itself. Numbers have a sane length. One with a leading zero is
part of a name more often than it is octal, and `1e3` is a rack or a node more often than a number."""
_CORE = "tag:yaml.org,2002:"
_TAGS = frozenset({None, "!", *(f"{_CORE}{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map"))})


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

    try:
        _check(yaml.parse(text, Loader=_loader()), blob.name)
        return next(yaml.load_all(text, Loader=_loader()), None)
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


@cache
def _loader() -> Any:
    """PyYAML's safe loader, with the words and numbers of this module in the place of YAML 1.1's."""
    import yaml  # noqa: PLC0415 - as above

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("PlainLoader", (base,), {"yaml_implicit_resolvers": {}})
    for name, pattern in _PLAIN.items():
        loader.add_implicit_resolver(f"{_CORE}{name}", regex(rf"(?:{pattern})\Z"), None)
    return loader


def _check(events: Iterator[Any], name: str) -> None:
    """Raises InputError for a first document with tags, or beyond bounds: what an alias repeats counts each time."""
    sizes: dict[str | None, int] = {}
    around: list[tuple[str | None, int]] = []
    built = 0
    for written, event in enumerate(events):
        kind, anchor, tag, why = type(event).__name__, getattr(event, "anchor", None), getattr(event, "tag", None), ""
        if kind == "DocumentEndEvent":
            return
        if tag not in _TAGS:
            why = f"has a tag: {short(str(tag))!r}"
        elif kind.endswith("StartEvent"):
            sizes.pop(anchor, None)  # an alias inside of it would be endless
            around.append((anchor, built))
        elif kind.endswith("EndEvent"):
            anchor, before = around.pop()
            sizes[anchor] = built - before
        elif kind == "ScalarEvent":
            sizes[anchor] = 1
        elif anchor not in sizes:
            why = f"refers to {short(str(anchor))!r}, which is not there or not at its end"
        built += sizes[anchor] if kind == "AliasEvent" and not why else 1
        if len(around) > MAX_DEPTH:
            why = "is nested too deeply"
        elif built > MAX_VALUES:
            why = f"holds more than {MAX_VALUES} values"
        elif built > FREE_VALUES + MAX_REPEATED * written:
            why = f"repeats itself by aliases to more than {MAX_REPEATED} times what is written"
        if why:
            raise InputError(name, why, line=event.start_mark.line + 1)
