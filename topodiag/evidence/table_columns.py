"""Names of columns as scripts write them, and the columns of `model/tables.py` that they are."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.lazy import regex
from topodiag.model import tables
from topodiag.words.own_data import own_data, patterns
from topodiag.words.text import words_of_name

MAX_NAME = 60
_LIKE = patterns("evidence/columns", "name")
_UNITS = frozenset({"ms", "s", "sec", "seconds"})
_STATES = frozenset({"state", "status"})
_HAVE = frozenset(own_data("evidence/columns")["have"])
_NAMED, _PARTS = (
    tuple((listed["name"], regex(listed["pattern"])) for listed in own_data("evidence/columns")[kind])
    for kind in ("column", "part")
)
"""Columns by their names, and what a table is of by those of its columns."""
_SUBJECTS = frozenset({tables.RANK, tables.HOST, tables.GPU, tables.PID, tables.COMPONENT, tables.SAYS, tables.COMMAND})
"""Columns that say whose a row is: alone they say nothing."""


def columns_of(names: Sequence[str], label: str = "") -> dict[int, str]:
    """The columns of a table by their places; empty where it has none that checks ask for. `label` stands before
    its first row."""
    words = [words_of_name(name, MAX_NAME) for name in names]
    columns = {at: column for at, name in enumerate(names) if (column := _column(name, words[at]))}
    columns |= _of_part(words, words_of_name(label, MAX_NAME))
    if set(columns.values()) <= _SUBJECTS and not {tables.RANK, tables.PID} <= set(columns.values()):
        return {}
    return columns


def _column(name: str, words: str) -> str:
    if _LIKE["setting"].match(name) is not None:
        return "" if _LIKE["of_one_node"].search(name) else f"{tables.SETTING}{name}"
    column = next((column for column, pattern in _NAMED if pattern.search(words)), "")
    if (
        not column
        and words.rpartition(" ")[2] in _UNITS
        and _LIKE["own"].search(words)
        and not _LIKE["waits"].search(words)
    ):
        return f"{tables.TIME}{words}"
    return column


def _of_part(words: Sequence[str], label: str) -> dict[int, str]:
    """Columns that say how many of a part there are and should be, or in which state it is."""
    wanted = [at for at, name in enumerate(words) if _LIKE["want"].search(name)]
    had = [at for at, name in enumerate(words) if _HAVE.intersection(name.split()) and at not in wanted]
    if len(wanted) == len(had) == 1 and (part := _part(f"{words[wanted[0]]} {words[had[0]]}")):
        return {wanted[0]: f"{tables.WANT}{part}", had[0]: f"{tables.HAVE}{part}"}
    states = [at for at, name in enumerate(words) if _STATES.intersection(name.split())]
    part = _part(" ; ".join((label, *words))) if states else ""
    return {states[0]: f"{tables.STATE}{part}"} if part else {}


def _part(words: str) -> str:
    return next((part for part, pattern in _PARTS if pattern.search(words)), "")
