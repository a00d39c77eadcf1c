"""A topology tree as the text that NCCL reads: its own lexical rules, which are not XML's.

Two blanks per level, attributes on one line with exactly one blank between them, no declaration, no blank before `>`
or `/>` (NCCL would read an attribute without a name there), no tab anywhere (src/graph/xml.cc, xmlGetToken and
ncclTopoDumpXmlRec, v2.28).
"""

from __future__ import annotations

from topodiag.model.nccl_tree import Element

MAX_TEXT = 254
"""Characters of a name or value (MAX_STR_LEN, src/graph/xml.h)."""
_NAME_STOPS = frozenset(" \t\r\n=/>\"'<\0")


class UnwritableError(ValueError):
    """A tree that no file of NCCL's can hold; the message says which name or value, and why."""


def to_text(tree: Element) -> str:
    """The file of a `<system>`. Raises UnwritableError."""
    lines: list[str] = []
    _write(tree, 0, lines)
    return "".join(lines)


def _write(element: Element, depth: int, lines: list[str]) -> None:
    words = [_name(element.tag), *(f"{_name(name)}={_quoted(name, value)}" for name, value in element.attributes)]
    head = "  " * depth + "<" + " ".join(words)
    if not element.children:
        lines.append(head + "/>\n")
        return
    lines.append(head + ">\n")
    for child in element.children:
        _write(child, depth + 1, lines)
    lines.append("  " * depth + f"</{element.tag}>\n")


def _name(name: str) -> str:
    if not name or len(name) > MAX_TEXT or not _NAME_STOPS.isdisjoint(name):
        raise UnwritableError(f"{name[:40]!r} cannot be a name in a topology file")
    return name


def _quoted(name: str, value: str) -> str:
    if len(value.encode("utf-8", "surrogateescape")) > MAX_TEXT:
        raise UnwritableError(f"the value of {name} is longer than the {MAX_TEXT} characters that NCCL takes")
    if "\0" in value:
        raise UnwritableError(f"the value of {name} holds a NUL")
    quote = "'" if '"' in value else '"'
    if quote in value:
        raise UnwritableError(f"the value of {name} holds both kinds of quotes: NCCL knows no escape")
    return f"{quote}{value}{quote}"
