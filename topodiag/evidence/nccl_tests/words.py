"""The vocabulary of nccl-tests: element types, operations and collectives.

SOURCE: NVIDIA/nccl-tests v1.0.0 to v2.19.6, src/common.cu (test_typenames, test_opnames).

Lines above and below the table: parameters, versions, averages, failures.

Physical lines: launchers' labels taken off, records of NCCL cut out, so that what nccl-tests wrote is left.

A launcher's label is kept as the key of a stream: each process of a job writes its own text.

Settings of a run, and who gives them: NCCL's log shows what is in force, a command what was meant.

The table of nccl-tests: its title, and its rows put together from the pieces in which they are written.

Columns differ by version and, before v2.13, by collective: the title tells them, and where it is lost a row's own shape
does. SOURCE: NVIDIA/nccl-tests src/common.cu (BenchTime, TimeTest) and src/util.cu since v2.17.4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import takewhile

from topodiag.evidence.nccl_log.grammar.prefix import BARE, RECORD
from topodiag.evidence.signatures.engine import first_in
from topodiag.evidence.signatures.wrappers import Stream, unwrap
from topodiag.lazy import dataclass, regex
from topodiag.model.bench import BenchRow, Timing
from topodiag.model.events import NO_FIELDS, Value
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.words.colours import without_colours
from topodiag.words.own_data import own_data, patterns

TYPE_BYTES: Mapping[str, int] = own_data("evidence/nccl_tests/words")["type_bytes"]
"""Bytes of an element by the name in the `type` column; `char` and `int` before v2.13, `fp8_*` in RCCL's fork."""

OPS = ("sum", "prod", "max", "min", "avg", "mulsum", "none")

COLLECTIVES = tuple(own_data("evidence/nccl_tests/words")["collectives"])
"""Names without `_perf`."""

SHARED = frozenset({"all_gather", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter"})
"""Whose buffer is cut in one part per rank: `size` = `count` x element x ranks, bus bandwidth (n-1)/n of algbw."""

TYPE = "|".join(sorted(TYPE_BYTES, key=len, reverse=True))
OP = "|".join(sorted(OPS, key=len, reverse=True))

LIKE = patterns("evidence/nccl_tests/lines", "words")
_BY_LETTERS = {name.replace("_", ""): name for name in COLLECTIVES} | {"bcast": "broadcast"}
"""Collectives by their letters, however a name writes them."""


def collective_of_binary(text: str) -> str:
    """The collective whose `*_perf` program a line names, "" where it names none."""
    match = LIKE["binary"].search(text)
    return match[1] if match else ""


def collective_of_name(name: str) -> str:
    """The collective that a file's name speaks of, "" where it speaks of none or of several."""
    spellings = LIKE["in_name"].findall(name.rsplit("/", 1)[-1])
    named = {_BY_LETTERS[re.sub(r"[-_]", "", text).lower().replace("2", "to")] for text in spellings}
    return named.pop() if len(named) == 1 else ""


def version_of_code(code: int) -> str:
    """`22809` as `2.28.9`; NCCL 2.8 and before counted in hundreds (`2708` is 2.7.8). SOURCE: NCCL src/nccl.h.in."""
    if not 1000 <= code < 1_000_000:
        return ""
    big = 10000 if code >= 10000 else 1000
    return f"{code // big}.{code % big // 100}.{code % 100}"


"""Transports write `NCCL_IB_HCA set to mlx5_0`, the reader of settings `set by environment to`."""


def parameters_of(text: str) -> dict[str, str] | None:
    """`nThread 1 nGpus 8 minBytes 8 ... graph: 0` by name; None for any other line."""
    match = LIKE["parameters"].search(text)
    if match is None:
        return None
    parameters = {"nThread": match[1], "nGpus": match[2]}
    for name, value in LIKE["pair"].findall(match[3][:2000]):
        parameters.setdefault(name, value)
    return parameters


def sentence(text: str) -> tuple[str, Mapping[str, Value]]:
    """What a line around the table says, as the catalogue names it, and its fields; "" for all other lines."""
    taken = first_in("benchmark", text)
    return ("", NO_FIELDS) if taken is None else (taken.entry.says.removeprefix("benchmark."), taken.fields)


MAX_LINE = 1 << 16
"""Bytes of one line that are looked at; a row with all its broken pieces is below a tenth of this."""


@dataclass(frozen=True, slots=True)
class Line:
    """`key`: the stream it belongs to, the process that its labels name. `text`: without label. `number` from 1."""

    number: int
    key: Stream
    text: str
    raw: str


def physical(data: bytes) -> Iterator[tuple[int, str, bool]]:
    """Numbered lines of the text without ends and colours, and whether one was cut for its length."""
    start, number, size = 0, 0, len(data)
    while start < size:
        end = data.find(b"\n", start)
        end = size if end < 0 else end
        number += 1
        cut = end - start > MAX_LINE
        raw = data[start : min(end, start + MAX_LINE)]
        start = end + 1
        for piece in raw.split(b"\r"):
            yield number, without_colours(piece.decode("utf-8", "replace")), cut


def labelled(number: int, text: str) -> Line:
    """The line without what launchers and log collectors put in front."""
    bare = unwrap(text)
    if bare.text.startswith("Test "):  # no label: nccl-tests names its own host in front of a failure
        bare = replace(bare, host="", text=f"{bare.host}: {bare.text}" if bare.host else bare.text)
    return Line(number, bare.stream, bare.text, text)


def without_records(text: str, hosts: frozenset[str], words: re.Pattern[str], *, in_row: bool) -> tuple[str, str]:
    """What a line holds before NCCL's first record, and the records. A row is written in pieces without line ends, so
    the last cell of a piece can be glued to the host's name: `-1gpu-a01:12:34 [0] NCCL INFO`."""
    if "NCCL" not in text and "INFO" not in text:
        return text, ""
    head = RECORD.search(text)
    if head is None:
        bare = BARE.search(text)
        return (text[: bare.start()], text[bare.start() :]) if bare else (text, "")
    at = head.start(1)
    host = head[1]
    if host not in hosts:
        ends = [known for known in hosts if host.endswith(known)]
        if ends:
            at += len(host) - len(max(ends, key=len))
        elif in_row or text[:at].strip()[:1].isdigit():
            glued = LIKE["glued"].match(host) or words.match(host)
            at += glued.end() if glued else 0
    return text[:at], text[at:]


MAX_SETTINGS = 200


@dataclass(frozen=True, slots=True)
class CommandSetting:
    """The value of a setting, "" for one that is unset, and the line of the command that gives it; None where NCCL
    itself prints it."""

    value: str
    command: Origin | None = None


def give(known: dict[str, CommandSetting], name: str, given: CommandSetting, *, below: bool = False) -> None:
    """Adds a setting to those that are known. The first one counts, for what is `below` two commands the later one, and
    what NCCL prints before any command."""
    before = known.get(name)
    outdone = before is not None and before.command is not None and (below or given.command is None)
    if not given.value:
        known.pop(name, None)
    elif outdone or (before is None and len(known) < MAX_SETTINGS):
        known[name] = given


def commands_of(known: Mapping[str, CommandSetting]) -> dict[str, Origin]:
    """Command by name, of those settings that no line of NCCL shows."""
    return {name: given.command for name, given in known.items() if given.command is not None}


PREAMBLE = regex(rf"(?<![\w.+-])(\d{{1,20}})[ \t]+(?:(\d{{1,20}})[ \t]+)?({TYPE})(?![\w.])(?:[ \t]+({OP})(?![\w.]))?")
"""size, count, type and operation of a row, anywhere in a line. NCCL 1's own table had one number alone."""
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
    match = LIKE["title"].search(text)
    if match is None:
        return None
    parts: list[list[str]] = [[]]
    for name in takewhile("timestamp".__ne__, match[0].replace("#wrong", " #wrong").split()[:MAX_CELLS]):
        if name in ("time", "cputime"):
            parts.append([])
        parts[-1].append(name)
    preamble, *blocks = map(tuple, parts)
    return Title(preamble, tuple(blocks[:2]), "N" in preamble) if blocks else None


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
    if match is None or (match[2] is None and (title is None or "N" not in title.preamble)):
        match = LIKE["other"].match(text)
    if match is None:
        return None
    end = match.end(4) if match[4] else match.end(3)
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
    text = LIKE["stamp"].sub("", text, count=1)
    cells: list[str] = []
    at = 0
    while (match := LIKE["cell"].match(text, at)) is not None:
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
        named = dict(zip(block, map(_value, values[start : start + len(block)]), strict=False))
        start += len(block)
        checked.append(named.get("#wrong", named.get("error")) is not None)
        time, wrong = named.get("time", named.get("cputime")), named.get("#wrong") if counted else None
        if time is not None and title is not None and title.milliseconds:
            time *= 1000
        timings.append(Timing(time, named.get("algbw"), named.get("busbw"), wrong, p99_us=named.get("i_p99")))
    bench_row = BenchRow(row.size, row.count, row.dtype, row.redop, root, timings[0], timings[1], origin=row.origin)
    return bench_row, len(values), (checked[0], checked[1])


def _is_root(cells: list[str], title: Title | None) -> bool:
    first = cells[0]
    if first == "-1":
        return True
    return first.isdigit() and (title.has_root if title is not None else len(cells) % 4 == 1)


def _is_delta(cell: str) -> bool:
    """`2e-07`, `0e+00`: the greatest difference; a count is a whole number, or `1.04858e+06`."""
    return "e-" in cell or cell.endswith("e+00")


def _value(cell: str) -> float | None:
    value = float(cell) if cell[:1].isdigit() else math.nan
    return value if math.isfinite(value) else None
