"""The one reader of tables: what any script prints of GPUs, links, ports, ranks or hosts in rows.

    GPU  links_active  links_expected        a header and cells: parted by commas, bars, tabs, blanks
    3    14            18

    CA 'mlx5_1'  State: Down  Rate: 10       rows of names and values, behind a label or without one
    n3: NCCL_ALGO=Ring                       what several hosts print, one line each

    [{"component": "fabric-manager", "health": "Unhealthy"}]         objects of JSON, also one a line or in a string

A column is kept where its name is one that checks ask for (`columns_of`). Whether a cell is good or bad is not asked
here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from topodiag.evidence.bench_devices import device_of
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import regex
from topodiag.model import tables
from topodiag.words.own_data import own_data, patterns
from topodiag.words.text import words_of_name

MAX_NAME = 60
MAX_LINE = 1000
MAX_LINES = 20_000
"""Lines of a text that are looked at: a table that somebody hands over is shorter."""
MAX_ROWS = 4096
MAX_COLUMNS = 40
MAX_DEPTH = 24
MAX_JSON = 1 << 20
"""Characters of a JSON text that is read as a whole."""

_Cells = tuple[int, str, list[str]]
"""A row: the number of its line, what stands before its cells, and these."""
Found = tuple[list[str], list[_Cells]]
"""The names of a table, and its rows."""

_SPLITS = tuple(patterns("evidence/columns", "split").values())
"""How cells are parted, the clearest first."""
_EDGE = ' \t|#>\r"'
_RULE = frozenset(" \t+-=|_:")
_LIKE = patterns("evidence/columns", "line")
_RUN_BEGAN = ("# size count", "# (B)", "# Out of bounds values")
"""A run of nccl-tests has listed its devices: what is listed after it is of the next run."""


class Tables(Source):
    """Tables whose columns checks ask for."""

    holds = "cheap"
    """What a text holds that has such a table, by its name in `_LIKE`."""

    def recognises(self, head: str) -> bool:
        blob = Blob("", head.encode("utf-8", "replace"))
        return _LIKE[self.holds].search(head) is not None and any(map(self.wants, tables_of(blob)))

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[tables.Table]:
        parsed = Parsed([table for table in tables_of(blob) if self.wants(table)])
        draft.tables += parsed.records
        return parsed

    def wants(self, table: tables.Table) -> bool:
        """Whether a table is of those that this source reads."""
        return True


class Rows(Tables):
    """Those that may stand in any text: rows of ranks and hosts, and what health agents say of a component."""

    holds = "in_any_text"

    def wants(self, table: tables.Table) -> bool:
        columns = set(table.columns)
        of_agent = tables.COMPONENT in columns and not columns.isdisjoint((tables.VERDICT, tables.ILL, tables.WELL))
        of_ranks = not columns.isdisjoint((tables.VERSION, tables.STARTED)) or any(
            name.startswith((tables.TIME, tables.SETTING)) for name in columns
        )
        return of_agent or (of_ranks and tables.COMPONENT not in columns)


def tables_of(blob: Blob) -> Iterator[tables.Table]:
    """The tables of a text that have a column which checks ask for."""
    lines = [line[:MAX_LINE].rstrip() for _, line in blob.lines()][:MAX_LINES]
    forms = (_headed(lines), _keyed(lines), _of_hosts(lines), _devices(lines), _objects(blob.text, lines))
    for names, rows in chain.from_iterable(forms):
        columns = columns_of(names, rows[0][1])
        if not columns:
            continue
        yield tables.Table(tuple(
            tables.Row({columns[at]: cell for at, cell in enumerate(cells) if at in columns},
                blob.origin(number, lines[number - 1]), label)
            for number, label, cells in rows
        ))  # fmt: skip


# --- a header and cells ---------------------------------------------------------------------------------------------


def _headed(lines: Sequence[str]) -> Iterator[Found]:
    at = 0
    while at < len(lines):
        for split, names in _heads(lines[at]):
            rows, end = _below(lines, at + 1, split, len(names))
            if rows and (split is not _SPLITS[-1] or _has_numbers(rows)):
                yield names, rows
                at = end - 1
                break
        at += 1


def _heads(line: str) -> Iterator[tuple[re.Pattern[str], list[str]]]:
    """How the cells of a header may be parted, with its names; nothing for a line that is no header."""
    text = line.strip(_EDGE)
    if len(text) < 6 or text[0].isdigit() or text.endswith(":") or _LIKE["cheap"].search(text) is None:
        return
    for split in _SPLITS:
        names = [name.strip('"') for name in split.split(text)]
        named = all(
            name and not _LIKE["number"].fullmatch(name) and "=" not in name and ":" not in name for name in names
        )
        if 2 <= len(names) <= MAX_COLUMNS and named and columns_of(names):
            yield split, names


def _below(lines: Sequence[str], at: int, split: re.Pattern[str], width: int) -> tuple[list[_Cells], int]:
    rows: list[_Cells] = []
    while at < len(lines) and len(rows) < MAX_ROWS:
        cells = [cell.strip('"') for cell in split.split(lines[at].strip(_EDGE))]
        if len(cells) == width and not set(lines[at]) <= _RULE:
            rows.append((at + 1, "", cells))
        elif not set(lines[at]) <= _RULE:
            break
        at += 1
    return rows, at


def _has_numbers(rows: Sequence[_Cells]) -> bool:
    """Whether a column is of numbers: words of a sentence are parted by blanks, too."""
    return any(
        all(_LIKE["number"].fullmatch(cell) for cell in column)
        for column in zip(*(cells for *_, cells in rows), strict=True)
    )


# --- rows of names and values ---------------------------------------------------------------------------------------


def _keyed(lines: Sequence[str]) -> Iterator[Found]:
    """Rows with the same names, wherever they stand."""
    groups: dict[tuple[str, ...], list[_Cells]] = defaultdict(list)
    for number, line in enumerate(lines, 1):
        label, cells = _row_of(line) if _LIKE["cheap"].search(line) is not None else ("", {})
        if cells and len(groups[tuple(cells)]) < MAX_ROWS:
            groups[tuple(cells)].append((number, label, list(cells.values())))
    for names, rows in groups.items():
        if len(rows) > 1:
            yield list(names), rows


def _row_of(line: str) -> tuple[str, dict[str, str]]:
    """What stands before the cells of a row, and these by their names; none for what is no such row."""
    pairs = list(_LIKE["pair"].finditer(line)) or (list(_LIKE["timed"].finditer(line)) if "ank" in line else [])
    if pairs:
        cells = {
            f"{pair[1]}_{pair[3]}" if pair.re.pattern == _LIKE["timed"].pattern else pair[1]: pair[2].strip('"[]')
            for pair in pairs
        }
        label = line[: pairs[0].start()]
    else:
        parts = [part for part in _LIKE["parts"].split(line.strip()) if part]
        fields = [match for part in parts if (match := _LIKE["field"].match(part)) is not None]
        if len(fields) < 2 or len(fields) < len(parts) - 1:
            return "", {}
        cells = {match[1]: match[2] for match in fields}
        label = "" if len(fields) == len(parts) else parts[0]
    named = _LIKE["label"].match(label)
    return named[1] if named is not None else "", cells


def _of_hosts(lines: Sequence[str]) -> Iterator[Found]:
    """What several hosts print of a version, where the text says of what."""
    rows = [
        (number, row[1], [row[2]])
        for number, line in enumerate(lines, 1)
        if (row := _LIKE["one_value"].match(line)) is not None
    ]
    if len(rows) > 1 and any(_LIKE["spoken_of"].search(line) for line in lines):
        yield [tables.VERSION], rows


def _devices(lines: Sequence[str]) -> Iterator[Found]:
    """The device lists of nccl-tests, one table for each command that starts several processes, else for each run: a
    run that failed has no results, and the next one begins behind what it printed."""
    names = [tables.RANK, tables.HOST, tables.GPU, tables.PID, tables.STARTED]
    rows: list[_Cells] = []
    started, ended = 0, False
    for number, line in enumerate(lines, 1):
        comment = " ".join(line[:MAX_NAME].split()) if line[:1] == "#" else ""
        began = comment.startswith(_RUN_BEGAN) or (ended and "nThread" in line)
        ended = (ended or bool(line and line[0] != "#")) and "Rank" not in line
        command = _LIKE["command"].search(line) if "_perf" in line else None
        if command is not None or (started < 2 and began):
            if _twice(rows):
                yield names, rows
            rows, started = [], _processes(command) if command is not None else started
        elif "Rank" in line and (row := device_of(line)) is not None and row.host and row.pid and "MIG" not in row.name:
            rows.append((number, row.host, [str(row.rank), row.host, str(row.device), str(row.pid), str(started)]))
    if _twice(rows):
        yield names, rows


def _twice(rows: Sequence[_Cells]) -> bool:
    """Whether a rank is listed twice: a list in order is for the reader of nccl-tests alone, no capture of a node."""
    return len({cells[0] for *_, cells in rows}) < len(rows)


def _processes(command: re.Match[str]) -> int:
    """How many processes of one job a command starts; srun starts jobs of their own, too, where it names no MPI."""
    count = _LIKE["count"].search(command["options"])
    if count is None or ("srun" in command[0][:12] and " --mpi" not in command["options"]):
        return 0
    return int(count[1])


# --- objects of JSON ------------------------------------------------------------------------------------------------


def _objects(text: str, lines: Sequence[str]) -> Iterator[Found]:
    """Objects with the same members are rows of one table."""
    if _LIKE["own_forms"].search(text[:4096]) is not None:
        return
    groups: dict[tuple[str, ...], list[_Cells]] = defaultdict(list)
    whole = _decoded(text) if text.lstrip()[:1] in ("{", "[") and len(text) <= MAX_JSON else None
    if whole is not None:
        for cells, at in _rows_of(whole, (), lines, 0):
            groups[tuple(cells)].append((at, "", list(cells.values())))
    for number, line in enumerate(lines if whole is None else (), 1):
        begin = line.find("{")
        if 0 <= begin <= 200 and (value := _decoded(line[begin:])) is not None:
            for cells, _ in _rows_of(value, (), (), 0):
                groups[tuple(cells)].append((number, "", list(cells.values())))
    for names, rows in groups.items():
        yield list(names), rows[:MAX_ROWS]


def _decoded(text: str) -> object | None:
    try:
        value = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


def _rows_of(
    value: object, names: tuple[str, ...], lines: Sequence[str], depth: int
) -> Iterator[tuple[dict[str, str], int]]:
    """The innermost objects with a member that checks ask for, each with the names of those around it."""
    if isinstance(value, str) and value[:1] in ("{", "[") and len(value) <= MAX_JSON:
        value = _decoded(value)
    if depth > MAX_DEPTH or not isinstance(value, (dict, list)):
        return
    if isinstance(value, list):
        for item in value[:MAX_ROWS]:
            yield from _rows_of(item, names, lines, depth + 1)
        return
    held = {key: _cell(item) for key, item in value.items() if isinstance(item, (str, int, float, bool))}
    component = tuple(held[key] for key in held if words_of_name(key, MAX_NAME) in _COMPONENTS)
    below = [row for item in value.values() for row in _rows_of(item, (*names, *component), lines, depth + 1)]
    if below:
        yield from below
        return
    columns, called = columns_of(list(held)), " ".join(dict.fromkeys((*names, *component)))
    if columns and (called or not _OF_AGENTS.issuperset(columns.values())):
        rest = {key: cell for key, cell in held.items() if words_of_name(key, MAX_NAME) not in _COMPONENTS}
        yield {"component": called, **rest}, _line_with(list(held.values()), lines)


_OF_AGENTS = frozenset({tables.VERDICT, tables.ILL, tables.WELL})
"""What says nothing without a component or words: any program may print that something succeeded."""
_COMPONENTS = frozenset({"component", "name", "check", "check name", "checker", "item", "test", "component class"})


def _cell(value: object) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)[:300]


def _line_with(values: Sequence[str], lines: Sequence[str]) -> int:
    """The line on which the longest words of an object stand, else the first."""
    longest = max(values, key=len, default="")[:60]
    return next((number for number, line in enumerate(lines, 1) if longest in line), 1)


# --- names of columns as scripts write them, and the columns of model/tables.py that they are -------------------------


_OF_NAMES = patterns("evidence/columns", "name")
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
    if _OF_NAMES["setting"].match(name) is not None:
        return "" if _OF_NAMES["of_one_node"].search(name) else f"{tables.SETTING}{name}"
    column = next((column for column, pattern in _NAMED if pattern.search(words)), "")
    if (
        not column
        and words.rpartition(" ")[2] in _UNITS
        and _OF_NAMES["own"].search(words)
        and not _OF_NAMES["waits"].search(words)
    ):
        return f"{tables.TIME}{words}"
    return column


def _of_part(words: Sequence[str], label: str) -> dict[int, str]:
    """Columns that say how many of a part there are and should be, or in which state it is."""
    wanted = [at for at, name in enumerate(words) if _OF_NAMES["want"].search(name)]
    had = [at for at, name in enumerate(words) if _HAVE.intersection(name.split()) and at not in wanted]
    if len(wanted) == len(had) == 1 and (part := _part(f"{words[wanted[0]]} {words[had[0]]}")):
        return {wanted[0]: f"{tables.WANT}{part}", had[0]: f"{tables.HAVE}{part}"}
    states = [at for at, name in enumerate(words) if _STATES.intersection(name.split())]
    part = _part(" ; ".join((label, *words))) if states else ""
    return {states[0]: f"{tables.STATE}{part}"} if part else {}


def _part(words: str) -> str:
    return next((part for part, pattern in _PARTS if pattern.search(words)), "")
