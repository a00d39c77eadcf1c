"""The table of nccl-tests: its title, and its rows put together from the pieces in which they are written.

Columns differ by version and, before v2.13, by collective: the title tells them, and where it is lost a row's own shape
does. SOURCE: NVIDIA/nccl-tests src/common.cu (BenchTime, TimeTest) and src/util.cu since v2.17.4.
"""

from __future__ import annotations

import math
from dataclasses import field

from topodiag.evidence.nccl_tests.words import OP, TYPE, TYPE_BYTES
from topodiag.lazy import dataclass, regex
from topodiag.model.bench import BenchRow, Timing
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.words.own_data import patterns

TITLE = regex(r"(?:(?:\b(?:size|bytes)\s+(?:count|N)|\bN)\s+type)\b.{0,300}?\bbusbw\b.*")
PREAMBLE = regex(rf"(?<![\w.+-])(\d{{1,20}})[ \t]+(?:(\d{{1,20}})[ \t]+)?({TYPE})(?![\w.])(?:[ \t]+({OP})(?![\w.]))?")
"""size, count, type and operation of a row, anywhere in a line. NCCL 1's own table had one number alone."""
_LIKE = patterns("evidence/nccl_tests/lines", "table")
MAX_CELLS = 40
MAX_SIZE = 1 << 62


@dataclass(frozen=True, slots=True)
class Title:
    """Names of the columns: of the preamble, and of one or two blocks."""

    preamble: tuple[str, ...]
    blocks: tuple[tuple[str, ...], ...]
    milliseconds: bool = False

    @property
    def has_root(self) -> bool:
        return "root" in self.preamble

    @property
    def cells(self) -> int:
        """Numbers of a row after type and operation."""
        return self.has_root + sum(len(block) for block in self.blocks)

    @property
    def cpu_time(self) -> bool:
        return any("cputime" in block for block in self.blocks)


def title_of(text: str) -> Title | None:
    """The columns that a title row names. v1 wrote milliseconds, and `bytes N` or `N` for `size count`."""
    match = TITLE.search(text)
    if match is None:
        return None
    preamble: list[str] = []
    blocks: list[list[str]] = []
    for name in match[0].replace("#wrong", " #wrong").split()[:MAX_CELLS]:
        if name in {"time", "cputime"}:
            blocks.append([])
        if name in {"timestamp"}:
            break
        (blocks[-1] if blocks else preamble).append(name)
    if not blocks:
        return None
    return Title(tuple(preamble), tuple(tuple(block) for block in blocks[:2]), "N" in preamble)


@dataclass(slots=True)
class OpenRow:
    """A row under construction. `cells` are the numbers after type and operation, as written."""

    size: int
    count: int
    dtype: str
    redop: str
    origin: Origin
    cells: list[str] = field(default_factory=list)


def begin_row(text: str, source: str, number: int, title: Title | None) -> tuple[OpenRow, str] | None:
    """A row that begins in this text, with the rest of the text after its preamble; None where none begins."""
    match = PREAMBLE.search(text)
    if match is not None and match[2] is None and (title is None or "N" not in title.preamble):
        match = None
    if match is None:
        match = _LIKE["other"].match(text)
        if match is None:
            return None
        end = match.end(4) if match[4] else match.end(3)
    else:
        end = match.end()
    size, count = int(match[1]), int(match[2] or match[1])
    if match[2] is None:
        size *= TYPE_BYTES.get(match[3], 1)
    if size > MAX_SIZE or count > MAX_SIZE:
        return None
    origin = Origin(source, number, text.strip()[:MAX_QUOTE])
    return OpenRow(size, count, match[3], match[4] or "", origin), text[end:]


def take_cells(row: OpenRow, text: str) -> str:
    """Move the numbers at the start of the text into the row; what is left of the text."""
    cells, rest = _cells(text)
    row.cells += cells[: MAX_CELLS - len(row.cells)]
    return rest


def only_cells(text: str) -> bool:
    """Whether a text holds numbers of a row and nothing else."""
    cells, rest = _cells(text)
    return bool(cells) and not rest


def _cells(text: str) -> tuple[list[str], str]:
    """The numbers at the start of a text, and what is left of it without the time stamp."""
    text = _LIKE["stamp"].sub("", text, count=1)
    cells: list[str] = []
    at = 0
    while (match := _LIKE["cell"].match(text, at)) is not None:
        cells.append(match[1])
        at = match.end()
    return cells, text[at:].strip()


def close_row(row: OpenRow, title: Title | None) -> tuple[BenchRow, int, tuple[bool, bool]]:
    """The row as it stands, how many numbers it had beside the root, and whether each of its blocks was checked. Before
    v2.13 the last column of a block is the greatest difference, not a count of wrong elements: it is not kept."""
    cells = row.cells
    has_root = bool(cells) and _is_root(cells, title)
    root = int(cells[0]) if has_root and abs(int(cells[0])) < MAX_SIZE else -1
    values = cells[1:] if has_root else cells
    if title is not None and len(values) <= sum(len(block) for block in title.blocks):
        names = (*title.blocks, ())[:2]
    else:
        wide = len(values) > 8  # -I 1: four columns about the iterations after each block
        block = ("time", "algbw", "busbw", "#wrong", *(("i_min", "i_max", "i_p99", "i_cv%") if wide else ()))
        names = (block, block)
    counted = "#wrong" in names[0] and not any(_is_delta(cell) for cell in values[3 :: len(names[0])])
    timings = []
    checked = []
    start = 0
    for block in names:
        named = dict(zip(block, values[start : start + len(block)], strict=False))
        start += len(block)
        checked.append(_value(named.get("#wrong", named.get("error"))) is not None)
        time = _value(named.get("time", named.get("cputime")))
        if time is not None and title is not None and title.milliseconds:
            time *= 1000
        timings.append(
            Timing(
                time,
                _value(named.get("algbw")),
                _value(named.get("busbw")),
                _value(named.get("#wrong")) if counted else None,
                p99_us=_value(named.get("i_p99")),
            )
        )
    bench_row = BenchRow(row.size, row.count, row.dtype, row.redop, root, timings[0], timings[1], origin=row.origin)
    return bench_row, len(values), (checked[0], checked[1])


def _is_root(cells: list[str], title: Title | None) -> bool:
    first = cells[0]
    if first == "-1":
        return True
    if not first.isdigit():
        return False
    return title.has_root if title is not None else len(cells) % 4 == 1


def _is_delta(cell: str) -> bool:
    """`2e-07`, `0e+00`: the greatest difference; a count is a whole number, or `1.04858e+06`."""
    return "e-" in cell or cell.endswith("e+00")


def _value(cell: str | None) -> float | None:
    if cell is None or not cell[:1].isdigit():
        return None
    value = float(cell)
    return value if math.isfinite(value) else None
