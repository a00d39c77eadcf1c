"""A topology tree as the text that NCCL reads: its own lexical rules, which are not XML's.

Two blanks per level, attributes on one line with exactly one blank between them, no declaration, no blank before `>`
or `/>` (NCCL would read an attribute without a name there), no tab anywhere (src/graph/xml.cc, xmlGetToken and
ncclTopoDumpXmlRec, v2.28). Characters that would steer a terminal are written as their escapes: no machine has them.
"""

from __future__ import annotations

from topodiag.model.nccl_tree import Element, of_rccl, renamed
from topodiag.model.nccl_versions import NEWEST, Feature, has, spell_version
from topodiag.words.text import without_steering

MAX_TEXT = 253
"""Bytes of a name or value: MAX_STR_LEN, 255, less the end of the string and the character that ends the text
(src/graph/xml.h, xml.cc v2.27; older versions overflow at the same place)."""
_NAME_STOPS = frozenset(" \t\r\n=/>\"'<\0")


class UnwritableError(ValueError):
    """A tree that no file of NCCL's can hold; the message says which name or value, and why."""


def to_text(tree: Element, minor: int = NEWEST) -> str:
    """The file of a `<system>`, as NCCL 2.`minor` reads it and all later versions do. Raises UnwritableError."""
    lines: list[str] = []
    _write(renamed(tree, {"nvlink": "xgmi"}) if of_rccl(tree) else tree, 0, lines, minor)
    return "".join(lines)


def _write(element: Element, depth: int, lines: list[str], minor: int) -> None:
    values = (f"{_name(name)}={_quoted(name, value, minor)}" for name, value in element.attributes)
    words = [_name(element.tag), *values]
    head = "  " * depth + "<" + " ".join(words)
    if not element.children:
        lines.append(head + "/>\n")
        return
    lines.append(head + ">\n")
    for child in element.children:
        _write(child, depth + 1, lines, minor)
    lines.append("  " * depth + f"</{_name(element.tag)}>\n")


def _name(name: str) -> str:
    if not name or len(name.encode("utf-8", "surrogateescape")) > MAX_TEXT or not _NAME_STOPS.isdisjoint(name):
        raise UnwritableError(f"{name[:40]!r} cannot be a name in a topology file")
    return without_steering(name)


def _quoted(name: str, value: str, minor: int) -> str:
    value = value if "\0" in value else without_steering(value)
    if len(value.encode("utf-8", "surrogateescape")) > MAX_TEXT:
        raise UnwritableError(f"the value of {name} is longer than the {MAX_TEXT} characters that NCCL takes")
    if "\0" in value:
        raise UnwritableError(f"the value of {name} holds a NUL")
    quote = "'" if '"' in value else '"'
    if quote in value:
        raise UnwritableError(f"the value of {name} holds both kinds of quotes: NCCL knows no escape")
    if quote == "'" and not has(minor, Feature.QUOTES_KEPT):
        raise UnwritableError(
            f"the value of {name} holds a double quote, which ends it before {spell_version(Feature.QUOTES_KEPT.since)}"
        )
    return f"{quote}{value}{quote}"
