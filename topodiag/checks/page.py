"""The page of a check, parsed from its class's docstring: `topodiag explain` and docs/checks/ draw the same parts.

The docstring begins with `ID: title`. Its sections follow in the order of SECTIONS, each a heading on a line by itself
with an indented body. In "How to confirm" a line is a command, with its remark beside it after three blanks or more, or
on the next line far in. A line that begins with a word in capitals-and-small letters or with a backtick begins a
sentence there; the sentence ends with the line that ends with `.` or `:`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from topodiag.lazy import dataclass, regex

if TYPE_CHECKING:
    from topodiag.checks.interface import Check

SECTIONS = ("What it finds", "Why it matters", "Evidence it reads", "When it stays silent", "How to confirm",
            "How to fix", "References")  # fmt: skip
COMMANDS = "How to confirm"
"""The section of commands."""
REMARK_INDENT = 20
"""Columns: a line that begins this far in continues the remark beside the command above it."""
_ITEM = regex(r"([-*•]|[0-9]{1,2}[.)]) +(.*)")
_GAP = regex(r" {3,}")
_SENTENCE = regex(r"[A-Z][a-z]|A |`")


@dataclass(frozen=True)
class Prose:
    """A paragraph on one line, or an item of a list with its mark (`-`, `1.`)."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class Command:
    """A command to type, and what it shows (empty: nothing to say)."""

    command: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """One section: its heading, and paragraphs, items and commands in order. An empty tuple parts two blocks."""

    name: str
    blocks: tuple[tuple[Prose | Command, ...], ...]


@dataclass(frozen=True)
class PageOfCheck:
    """All that a docstring says."""

    title: str
    sections: tuple[Section, ...]


def page_of(check: type[Check[Any]]) -> PageOfCheck:
    """The page of a check. Without docstrings (python -OO) it has no sections."""
    return parse(check.__doc__ or "")


def parse(doc: str) -> PageOfCheck:
    """The parts of a docstring. Takes any text: a line outside a section is left out."""
    title, *lines = inspect.cleandoc(doc).splitlines() or [""]
    sections: list[tuple[str, list[str]]] = []
    for line in lines:
        if line in SECTIONS:
            sections.append((line, []))
        elif sections:
            sections[-1][1].append(line)
    return PageOfCheck(title, tuple(Section(name, _blocks(name, body)) for name, body in sections))


def _blocks(name: str, body: list[str]) -> tuple[tuple[Prose | Command, ...], ...]:
    """The blocks that empty lines part."""
    blocks: list[list[str]] = [[]]
    for line in body:
        if line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    read = _commands if name == COMMANDS else _prose
    return tuple(read(block) for block in blocks if block)


def _prose(block: list[str]) -> tuple[Prose | Command, ...]:
    parts: list[Prose | Command] = []
    for line in map(str.strip, block):
        item = _ITEM.fullmatch(line)
        if item is not None:
            parts.append(Prose(item[2], item[1]))
        elif parts and isinstance(parts[-1], Prose):
            parts[-1] = Prose(f"{parts[-1].text} {line}", parts[-1].mark)
        else:
            parts.append(Prose(line))
    return tuple(parts)


def _commands(block: list[str]) -> tuple[Prose | Command, ...]:
    parts: list[Prose | Command] = []
    for line in block:
        text = line.strip()
        last = parts[-1] if parts else None
        if isinstance(last, Prose) and not last.text.endswith((".", ":")):
            parts[-1] = Prose(f"{last.text} {text}")
        elif isinstance(last, Command) and len(line) - len(line.lstrip()) >= REMARK_INDENT:
            parts[-1] = Command(last.command, (*last.remarks, text))
        elif _SENTENCE.match(text):
            parts.append(Prose(text))
        else:
            command, remark = [*_GAP.split(text, maxsplit=1), ""][:2]
            parts.append(Command(command, (remark,) if remark else ()))
    return tuple(parts)
