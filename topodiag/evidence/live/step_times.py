"""The steps of a training in its log, which may hold NCCL's lines too: one series for each start and each rank.

One line of a step is nothing: it takes MIN_STEPS of them. A number that goes back is a start from a checkpoint, or
another job; one that comes again is another rank without a name, or a bar that was written anew.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cache
from itertools import accumulate, chain, compress, filterfalse, islice, repeat
from math import fsum, isnan, nan
from operator import le, lt
from typing import Any

from topodiag.evidence.interface import rank_of_name
from topodiag.evidence.layout.job_settings import LOOKS as ARGUMENTS
from topodiag.evidence.live.step_forms import Forms, Run
from topodiag.evidence.live.step_lines import ELAPSED, WORDS, StepLine, clock_s, timed_batches
from topodiag.evidence.signatures.literals import Finder, line_ends, lines_with
from topodiag.evidence.signatures.wrappers import without_clock
from topodiag.lazy import dataclass
from topodiag.model.provenance import MAX_QUOTE
from topodiag.model.steps import Quotes, StepPart, Steps, StepSeries
from topodiag.words.own_data import byte_patterns, patterns

MAX_BYTES = 256 << 20
MAX_STEPS = 500_000
MIN_STEPS = 3
_LOOKED = 4000
"""Lines with the words of a step that are looked at before a text is none."""
_MOST_SERIES = 20_000
_JITTER = 3
"""Steps by which lines of ranks that print at once may stand in another order."""
_HEAD_REACH = 40
"""Lines below the head of a step which may hold its figures."""
_TOGETHER = 1 << 16
"""Bytes of which a run may be the first ones."""
_LIKE = patterns("evidence/live/lines", "steps")
_IN_TEXT = byte_patterns("evidence/live/lines", "step_bytes")
_LEAST_CLOCK = 8
"""Steps of which each takes longer than the one before it, by chance in one of 40,000 logs."""
_SPELL_S = 20
"""Seconds over which a bar's whole seconds measure its steps to 5 %."""
_FEW = 20
"""Share of the longest bar's time below which one of a few seconds in all is of what the work needs first."""
_ELAPSED = ("elapsed:", "elapsed=")  # since a run began, though some programs begin it anew with each step
_MOST_LENGTHS = 8
"""Lengths of bars beside a training: of its epochs, evaluations, warm-ups and downloads."""
_NEAR = 200
"""Characters behind a step within which its rank may stand."""
_WITH_WORDS = Finder([word.encode() for word in WORDS], lines=True)
_WITH_STEPS = Finder((b"tep", b"ter", b"/it", b"it/s", b"poch", b"num_updates", b"Train: "), once=True)
_UNITS = ("s", "tokens/s", "samples/s", "TFLOP/s")
"""Units in the order in which they are preferred where a line has several."""


def holds_steps(data: bytes, forms: Forms | None = None) -> bool:
    """Whether a text, or a part of one, has lines of several steps, or the arguments of a training. The
    parts of one text share `forms`: to learn one costs more than to read many lines."""
    if b" ..." in data and ARGUMENTS.search(data) is not None:
        return True
    if not _WITH_STEPS.any(data):
        return False
    seen: set[tuple[int, str]] = set()
    trains = cache(lambda: any(_IN_TEXT["trains"].search(line) for line in data.split(b"\n") if b" NCCL " not in line))
    for _, _, step_line, run in _lines(data.replace(b"\r", b"\n"), _LOOKED, forms):
        if step_line.number is not None and step_line.values and (not step_line.bar or trains()):
            seen.add((step_line.number, step_line.bar))
        if run is not None or len(seen) >= MIN_STEPS:
            return True
    return False


_KINDS = {"number": "q", "time": "d", "work": "d", "waited": "d", "opens": "b", "line": "q", "row": "q"}
"""The columns of lines, with their types."""


@dataclass(slots=True)
class _Start:
    """One start of one rank, while it is read: columns of its lines, and by unit their values, NaN where a line has
    none that counts: a number that came before does not."""

    total: int
    bar: str
    last: int = -1
    columns: dict[str, array[Any]] = field(default_factory=lambda: {name: array(kind) for name, kind in _KINDS.items()})
    values: dict[str, array[float]] = field(default_factory=lambda: defaultdict(lambda: array("d")))
    lasts: dict[str, int] = field(default_factory=dict)
    quotes: Quotes = field(default_factory=Quotes)
    parts: dict[int, tuple[StepPart, ...]] = field(default_factory=dict)

    def add(self, step_line: StepLine, number: int, time: float, line: int, quote: str) -> None:
        """A line of it; those of a bar are parts of one line of the file."""
        self.last = max(self.last, number)
        values = {unit: value for unit, value in step_line.values.items() if number > self.lasts.get(unit, -1)}
        if not values:
            return
        row = len(self.columns["row"])
        for unit, value in values.items():
            column = self.values[unit]
            column.extend(repeat(nan, row - len(column)))
            column.append(value)
            self.lasts[unit] = number
        work, waited = (nan if one is None else one for one in (step_line.work, step_line.waited))
        cells = (number, time, work, waited, step_line.opens, 0 if self.bar else line, row)
        for column, cell in zip(self.columns.values(), cells, strict=True):
            column.append(cell)
        self.quotes.add(quote)
        if step_line.parts:
            self.parts[row] = step_line.parts

    def extend(self, run: Run, lines: Sequence[int]) -> None:
        """The lines of a run as `add` takes each; `lines` are those of the file."""
        counted = {unit: bisect_right(run.numbers, self.lasts.get(unit, -1)) for unit in run.values}
        begin, row = min(counted.values()), len(self.columns["row"])
        size = len(run.lines) - begin
        for unit, values in run.values.items():
            column = self.values[unit]
            column.extend(repeat(nan, row + counted[unit] - begin - len(column)))
            column.extend(values[counted[unit] :])
            self.lasts[unit] = max(self.lasts.get(unit, -1), run.numbers[-1])
        self.last = max(self.last, run.numbers[-1])
        own, none = slice(begin, None), [nan] * size
        work = none if run.work is None else run.work[own]
        cells = (run.numbers[own], run.times[own], work, none, repeat(0, size), lines[own], range(row, row + size))
        for column, several in zip(self.columns.values(), cells, strict=True):
            column.extend(several)
        for line in run.lines[own]:
            self.quotes.add(line.strip()[:MAX_QUOTE])

    def in_unit(self, unit: str) -> array[float]:
        """The values in this unit."""
        return array("d", filterfalse(isnan, self.values.get(unit, ())))

    def steps(self, unit: str, source: str) -> Steps:
        """Its steps in this unit."""
        kept = [not isnan(value) for value in self.values[unit]]
        columns = {name: array(column.typecode, compress(column, kept)) for name, column in self.columns.items()}
        values = _measured(columns["number"], self.in_unit(ELAPSED), self.in_unit(unit))
        return Steps(source, {**columns, "value": values}, self.quotes, self.parts)


def _measured(numbers: Sequence[int], elapsed: Sequence[float], values: array[float]) -> array[float]:
    """The seconds of the steps of a bar over the last _SPELL_S or more that went by since it began, or began anew in a
    resumed run; before them, and where no bar says what went by, as the lines say."""
    began = 0
    for at, now in enumerate(elapsed):
        began = at if now < elapsed[at - 1] else began
        begin = bisect_right(elapsed, now - _SPELL_S, began, at) - 1
        if begin >= began:
            values[at] = (now - elapsed[begin]) / (numbers[at] - numbers[begin])
    return values


def lines_of_file(data: bytes) -> Sequence[int]:
    """By the lines of a text whose ends were made alike, from 0, the lines of its file from 1: what redraws itself with
    carriage returns is one line there."""
    ends = (match[0] != b"\r" for match in re.finditer(rb"\r\n?|\n", data))
    return array("I", accumulate(ends, initial=1))


def read_steps(text: str | bytes, source: str, lines: Sequence[int] = ()) -> tuple[StepSeries, ...]:
    """The series of a text, in the order in which they begin. Units are seconds a step where the lines say it, else a
    rate; times are those that stand in the line. `lines` are those of the file (lines_of_file), () where they are those
    of the text."""
    of_file = -1 if (named := rank_of_name(source)) is None else named
    starts: dict[tuple[int, str, str], list[_Start]] = {}
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    trains = cache(lambda: _IN_TEXT["trains"].search(data) is not None)
    places = lines or range(1, len(data) + 1)
    taken = 0
    for number, line, step_line, run in _lines(data):
        if step_line.number is None or not step_line.values or (step_line.bar and not trains()):
            continue
        before = line[: step_line.at] if step_line.at >= 0 else line[:300]
        rank, host = _who(before, line, of_file)
        several = starts.setdefault((rank, host, step_line.bar), [])
        if not _belongs(several, step_line.number, step_line.total):
            if sum(map(len, starts.values())) >= _MOST_SERIES:
                break
            several.append(_Start(step_line.total, step_line.bar))
        time = without_clock(before[-300:])[1]
        several[-1].add(step_line, step_line.number, time, places[number - 1], line.strip()[:MAX_QUOTE])
        if run is not None:
            several[-1].extend(run, places[number - 1 : number - 1 + len(run.lines)])
        taken += len(run.lines) if run is not None else 1
        if taken >= MAX_STEPS:
            break
    longest = cache(lambda: max((clock_s(*match.groups()) for match in _IN_TEXT["gone_by"].finditer(data)), default=0))
    of_work = ((key, several) for key, several in starts.items() if not key[2] or _is_of_work(several, longest))
    series = list(chain.from_iterable(_series(source, *key[:2], several) for key, several in of_work))
    return _without_others(series, chain(*starts.values()))


def _series(source: str, rank: int, host: str, starts: Iterable[_Start]) -> Iterator[StepSeries]:
    """Those of a rank that are long enough."""
    for start in starts:
        if (chosen := _unit(start)) is not None and len(start.in_unit(chosen)) >= MIN_STEPS:
            yield StepSeries(source, start.steps(chosen, source), chosen, rank, host, start.bar)


def _is_of_work(starts: Iterable[_Start], longest: Callable[[], float]) -> bool:
    """Whether the bars of a name took longer than what the work needs first, beside the `longest` of all bars."""
    took = fsum(max(start.values.get(ELAPSED, ()), default=0.0) for start in starts)
    return took >= _SPELL_S or took * _FEW >= longest()


_Line = tuple[int, str, StepLine, Run | None]
"""The number of a line, its text, what it says, and the run that it begins."""


def _lines(data: bytes, most: int = MAX_STEPS * 100, forms: Forms | None = None) -> Iterator[_Line]:
    """Lines that say something of a step, among the first `most` that may. Figures below the head of a step have its
    number, those of a log without heads are counted, and what timers print below a step is of it."""
    head, at, free = None, 0, 0
    forms = forms or Forms()
    held: _Line | None = None
    for number, line, run in islice(_with_words(data, forms), most):
        timed = timed_batches(line)
        if timed is not None and held is not None and number - held[0] <= _HEAD_REACH:
            held = (held[0], held[1], replace(held[2], waited=timed), held[3])
        step_line = forms.read(line) if timed is None else None
        if step_line is None:
            continue
        if step_line.number is not None:
            head, at = step_line, number
        elif head is not None and not head.values and number - at <= _HEAD_REACH:
            step_line = StepLine(head.number, head.total, step_line.values, bar=head.bar, waited=step_line.waited)
        elif head is None and step_line.waited is not None:
            step_line, free = replace(step_line, number=free), free + 1
        if held is not None:
            yield held
        held = (number, line, step_line, run)
    if held is not None:
        yield held


def _with_words(data: bytes, forms: Forms) -> Iterator[tuple[int, str, Run | None]]:
    """The lines with words of a step, and the run that a line begins."""
    at, above = 0, 0
    while at < len(data):
        stop = data.rfind(b"\n", at, at + _TOGETHER) + 1 or data.find(b"\n", at + _TOGETHER) + 1 or len(data)
        block = data[at:stop]
        run = forms.run(block.decode()) if block.isascii() else None
        if run is not None:
            yield above + 1, run.lines[0], run
            block, above = block[sum(map(len, run.lines)) + len(run.lines) :], above + len(run.lines)
        for number, begin, end, _ in lines_with(_WITH_WORDS, block):
            line = block[begin:end]
            if b" NCCL " not in line:
                yield above + number, line.decode("utf-8", "replace"), None
        at, above = stop, above + line_ends(block, 0, len(block))


def _who(before: str, line: str, of_file: int) -> tuple[int, str]:
    """Rank and host of a line: what stands before the step names them, or the name of the file."""
    match = None
    if "<std" in before or before.lstrip()[:1].isdigit() or "rank" in line[: len(before) + _NEAR].lower():
        match = _LIKE["rank"].search(before) or _LIKE["rank_behind"].search(line, len(before), len(before) + _NEAR)
    rank = int(next(word for word in match.groups() if word)) if match is not None else of_file
    named = _LIKE["host"].match(line)
    return rank, named[1] if named is not None else ""


def _belongs(several: list[_Start], number: int, total: int) -> bool:
    """Whether a step is of the start that was read last."""
    if not several:
        return False
    last = several[-1]
    return number > last.last - _JITTER and not (total and last.total and total != last.total)


def _unit(start: _Start) -> str | None:
    """The unit of a start: seconds where most lines say them, None where they are those of a clock."""
    if _is_clock(start):
        return None
    sizes = {unit: len(start.in_unit(unit)) for unit in start.values}
    most = max(sizes.values(), default=0)
    return next((unit for unit in _UNITS if 2 * sizes.get(unit, 0) > most), None)


def _is_clock(start: _Start) -> bool:
    """Whether the seconds of a start are the time since its begin, or what a simulation calls time: durations of steps
    do not grow from each step to the next, and what is called elapsed sinks at times where it is a step's."""
    values = start.in_unit("s")
    if start.bar or len(values) < _LEAST_CLOCK or values[0] == values[-1]:
        return False
    return all(map(le if any(map(start.quotes[0].lower().__contains__, _ELAPSED)) else lt, values, values[1:]))


def _without_others(series: list[StepSeries], starts: Iterable[_Start]) -> tuple[StepSeries, ...]:
    """Without bars where lines tell of steps, and of bars the last that counts as much as the one that came furthest:
    shorter ones are evaluations, one as long is a later run, under way perhaps. None where bars of many lengths count
    more than twice as much as the longest: each counts another data set."""
    lines = [series for series in series if not series.smoothed]
    if lines:
        return tuple(lines)
    lengths = {start.total for start in starts if start.bar}
    if len(lengths) > _MOST_LENGTHS and sum(lengths) > 2 * max(lengths):
        return ()
    by_reach = sorted(series, key=lambda series: series.steps[-1].number)
    longest = {series.bar.rpartition(" ")[2] for series in by_reach[-1:]}
    return tuple(series for series in series if series.bar.rpartition(" ")[2] in longest)[-1:]
