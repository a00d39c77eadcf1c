"""Runs in the text output: one state machine per stream of lines, and a few things that hold for the whole file.

Streams are told apart by the labels that launchers put in front of lines. Several runs can be open in one stream: a
program built without MPI prints as many tables as there are processes, through one another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from itertools import islice

from topodiag.evidence.assignments import commanded_in
from topodiag.evidence.bench_devices import device_of
from topodiag.evidence.nccl_tests import words
from topodiag.evidence.nccl_tests.words import OpenRow, Title, begin_row, close_row, only_cells, take_cells, title_of
from topodiag.evidence.signatures.wrappers import INSIDE, Stream
from topodiag.lazy import dataclass, regex
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun
from topodiag.model.events import Value
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.model.result import UnreadLine
from topodiag.words.dialect import Maker

MAX_ROWS = 200_000
"""Rows kept of one file; a sweep has some thirty, `-o all -d all` a few thousand."""
MAX_RUNS = 5_000
MAX_DEVICES = 100_000
MAX_ERRORS = 20
MAX_SHAPES = 200
"""Shapes of unread lines kept with a text; the rest is only counted."""
MAX_HOSTS = 64
"""Host names tried against what a row's last cell is glued to."""
MAX_OPEN = 512
_WORDS = regex(rf"(?:{words.TYPE}|{words.OP})(?=[A-Za-z0-9])")


@dataclass(slots=True)
class Draft:
    """A run under construction. `widths` are the numbers that each row had; `seen` the kinds of lines so far."""

    key: Stream
    origin: Origin
    collective: str = ""
    headed: bool = False
    """Whether a header above the table showed where the run starts."""
    title: Title | None = None
    rows: list[BenchRow] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    checked: tuple[bool, bool] = (False, False)
    devices: dict[int, BenchDevice] = field(default_factory=dict)
    version: str = ""
    maker: Maker | None = None
    nccl: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    env: dict[str, words.CommandSetting] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    failures: list[Origin] = field(default_factory=list)
    average: float | None = None
    bounds: int | None = None
    devices_cut: bool = False
    from_json: bool = False
    aborted: bool = False
    one_rank_tables: int = 0
    """How many tables of one rank there are, of which this is one, by a build without MPI."""
    notes: list[str] = field(default_factory=list)

    @property
    def closed(self) -> bool:
        return self.average is not None

    @property
    def last_size(self) -> int:
        """Of its newest row, -1 without one."""
        return self.rows[-1].size if self.rows else -1

    @property
    def single_process(self) -> bool:
        """Whether one process alone could have printed this header: what a build without MPI looks like."""
        per = int(self.parameters.get("nThread", "1")) * int(self.parameters.get("nGpus", "1"))
        return bool(self.parameters) and len(self.devices) <= per


@dataclass(slots=True)
class _Stream:
    runs: list[Draft] = field(default_factory=list)
    open: tuple[OpenRow, Draft] | None = None
    """The row that its pieces still come of, and its run."""


@dataclass(slots=True)
class Read:
    """What one file held. `left` counts lines that were not understood, `records` those of NCCL's own log; `settings`
    are those of commands in a file without a run: value and line by name."""

    runs: tuple[BenchRun, ...] = ()
    settings: Mapping[str, tuple[str, Origin]] = field(default_factory=dict)
    drafts: list[Draft] = field(default_factory=list)
    """The runs before what they leave unsaid is inferred."""
    unread: list[UnreadLine] = field(default_factory=list)
    left: int = 0
    lines: int = 0
    records: int = 0
    warnings: list[Origin] = field(default_factory=list)
    """What NCCL itself warned of, the first ones."""
    named: list[str] = field(default_factory=list)
    """Collectives whose programs the text names anywhere."""
    env: dict[str, words.CommandSetting] = field(default_factory=dict)
    """Settings in force where the text ends."""


class TextReader:
    """Reads one file's lines in order; `finish` gives all of it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.made = Read()
        self._streams: dict[Stream, _Stream] = {}
        self._hosts: frozenset[str] = frozenset()
        self._named = ""
        self._nccl = ""
        self._env: dict[str, words.CommandSetting] = {}
        self._above = ""
        self._assigned: set[str] = set()
        self._shapes: dict[str, tuple[int, int, str]] = {}
        """By shape of lines that were not understood, how many there are, and number and text of the first."""
        self._rows = 0

    @property
    def _newest(self) -> Draft | None:
        return self.made.drafts[-1] if self.made.drafts else None

    @property
    def _current(self) -> Draft | None:
        """The newest run, where no line has ended it."""
        return newest if (newest := self._newest) is not None and not newest.closed else None

    def read(self, data: bytes) -> Read:
        for number, text, cut in words.physical(data):
            self.made.lines = number
            if cut:
                self._leave(number, text[:MAX_QUOTE], "longer than any line of the test, cut")
            if text and not text.isspace():
                self._line(words.labelled(number, text))
        for stream in self._streams.values():
            self._end_row(stream)
        self.made.env = self._env
        for count, number, text in self._shapes.values():
            more = f", with {count - 1} more like it" if count > 1 else ""
            self.made.unread.append(UnreadLine(self.source, number, text, f"no line of the test{more}"))
        return self.made

    def _line(self, line: words.Line) -> None:
        stream = self._streams.get(line.key)
        if stream is None:
            stream = _Stream()
            if len(self._streams) < MAX_OPEN * 8:
                self._streams[line.key] = stream
        text, record = words.without_records(line.text, self._hosts, _WORDS, in_row=stream.open is not None)
        if record:
            self.made.records += 1
            self._record(line, record)
            if not text.strip():
                return
        if self._row(line, text, stream) or self._header(line, text, stream):
            return
        kind, fields = words.sentence(text)
        is_read = self._versions(line, kind, fields, stream) or self._footer(line, kind, fields, stream)
        if not (is_read or kind == "known" or words.LIKE["fence"].fullmatch(text) or self._outside_line(line, text)):
            self._leave(line.number, line.raw.strip()[:MAX_QUOTE], "")

    def _record(self, line: words.Line, text: str) -> None:
        """What NCCL's own log adds: its version, the settings that it found, and its warnings."""
        if " set by environment to " in text or " set to " in text:
            match = words.LIKE["environment"].search(text)
            if match:
                self._setting(match[1], match[2].strip().removesuffix("."))
        elif "CCL version" in text:
            self._library(text)
        if "CCL WARN" in text and len(self.made.warnings) < MAX_ERRORS:
            self.made.warnings.append(Origin(self.source, line.number, line.text.strip()[:MAX_QUOTE]))

    def _setting(self, name: str, value: str, command: Origin | None = None) -> None:
        """A setting holds for the run that is open, and for those below it. What NCCL prints is in force: there the
        `command` that gave it proves nothing more."""
        words.give(self._env, name, words.CommandSetting(value, command), below=True)
        if value and (run := self._current) is not None:
            words.give(run.env, name, words.CommandSetting(value, command))

    def _library(self, text: str) -> bool:
        match = words.LIKE["nccl_version"].search(text)
        if match is None:
            return False
        if (run := self._current) is not None:
            run.nccl = run.nccl or match[1]
        else:
            self._nccl = match[1]
        return True

    def _outside_line(self, line: words.Line, text: str) -> bool:
        """Lines outside of a run's own: the command that starts it, NCCL's version without a head."""
        given = list(islice(commanded_in(text, self._above), words.MAX_SETTINGS))
        self._above = text
        named = words.collective_of_binary(text)
        if named:  # another command: the settings of the one before are gone
            for name in self._assigned:
                self._env.pop(name, None)
            self._assigned = {name for name, _ in given}
        for name, value in given:
            self._setting(name, value, Origin(self.source, line.number, line.text.strip()[:MAX_QUOTE]))
        if named:
            self._named = named
            self.made.named.append(named) if named not in self.made.named else None
            if (run := self._current) is not None and not (run.rows or run.collective):
                run.collective = named
            return True
        return bool(given) or ("CCL version" in text and self._library(text))

    # -- rows --

    def _row(self, line: words.Line, text: str, stream: _Stream) -> bool:
        bare = INSIDE.sub(" ", text) if "[" in text else text
        head = bare.lstrip()
        if not head or not (head[0].isdigit() or head[0] in "-NnX[(>" or any(c.isdigit() for c in head[:200])):
            return False
        title = next((run.title for run in reversed(stream.runs) if run.title is not None), None)
        begun = None if head[0] == "#" else begin_row(bare, self.source, line.number, title)
        if begun is not None:
            self._end_row(stream)
            row, rest = begun
            stream.open = row, self._target(stream, row, line)
            left = take_cells(row, rest)
        elif stream.open is not None and only_cells(bare):
            left = take_cells(stream.open[0], bare)
        else:
            return False
        if left:
            self._leave(line.number, left[:MAX_QUOTE], "")
        if stream.open is not None:
            row, run = stream.open
            if run.title is not None and 0 < run.title.cells <= len(row.cells):
                self._end_row(stream)
        return True

    def _target(self, stream: _Stream, row: OpenRow, line: words.Line) -> Draft:
        """The run that a row belongs to: the newest, or among several open tables the one whose sizes it goes on."""
        able = [run for run in stream.runs if not run.closed] or [self._begin(stream, line)]
        going = [run for run in reversed(able) if run.title is not None and run.last_size < row.size]
        return max(going, key=lambda run: run.last_size) if going and able[-1].single_process else able[-1]

    def _end_row(self, stream: _Stream) -> None:
        if stream.open is None:
            return
        (row, target), stream.open = stream.open, None
        self._rows += 1
        if self._rows > MAX_ROWS:
            self._leave(row.origin.line or 0, row.origin.text, "more rows than are kept")
            return
        bench_row, width, checked = close_row(row, target.title)
        target.rows.append(bench_row)
        target.widths.append(width)
        target.checked = (target.checked[0] or checked[0], target.checked[1] or checked[1])

    # -- what stands above a table --

    def _begin(self, stream: _Stream, line: words.Line) -> Draft:
        self._end_row(stream)
        draft = Draft(line.key, Origin(self.source, line.number, line.text.strip()[:MAX_QUOTE]))
        draft.env.update(self._env)
        draft.nccl, self._nccl = self._nccl, ""
        if self._named:
            draft.collective, self._named = self._named, ""
        if len(self.made.drafts) < MAX_RUNS:
            self.made.drafts.append(draft)
        stream.runs.append(draft)
        if len(stream.runs) > MAX_OPEN:
            del stream.runs[0]
        return draft

    def _next(self, stream: _Stream, line: words.Line, *, filled: bool) -> Draft:
        """The run that a header's line belongs to: the newest, or a new one where the newest has this line already."""
        runs = [run for run in stream.runs if not run.closed]
        if runs and not filled and not runs[-1].rows:
            return runs[-1]
        stream.runs = [run for run in runs if run.single_process]  # any other was aborted: its rows have ended
        return self._begin(stream, line)

    def _header(self, line: words.Line, text: str, stream: _Stream) -> bool:
        newest = stream.runs[-1] if stream.runs else None
        if "nThread" in text and (parameters := words.parameters_of(text)) is not None:
            run = self._next(stream, line, filled=newest is not None and bool(newest.parameters))
            run.parameters = parameters
            return True
        if "Rank" in text and (device := device_of(text)) is not None:
            self._device(stream, line, device, text)
            return True
        if "type" in text and "busbw" in text and (title := title_of(text)) is not None:
            run = next((run for run in reversed(stream.runs) if not run.closed and run.title is None), None) or (
                self._next(stream, line, filled=newest is not None and newest.title is not None)
            )
            self._end_row(stream)
            run.title = title
            return True
        return False

    def _versions(self, line: words.Line, kind: str, fields: Mapping[str, Value], stream: _Stream) -> bool:
        newest = stream.runs[-1] if stream.runs else None
        if kind == "version":
            run = self._next(stream, line, filled=newest is not None and bool(newest.version or newest.parameters))
            run.version = str(fields["version"])
            run.nccl = words.version_of_code(int(fields.get("code", 0))) or run.nccl
            run.maker = {"rccl": Maker.AMD}.get(str(fields["name"]), run.maker)
        elif kind in ("starting", "concluded"):
            name = str(fields["name"])
            named = words.collective_of_binary(name) or words.collective_of_binary(name + "_perf")
            if kind == "starting":
                again = newest is not None and (bool(newest.parameters) or newest.headed)
                run = self._next(stream, line, filled=again)
                run.collective, run.headed = named or run.collective, True
            elif newest is not None:
                newest.collective = newest.collective or named
        elif kind == "rccl version" and newest is not None:
            newest.version, newest.maker = str(fields["version"]), Maker.AMD
        elif kind == "compiled":
            self._nccl = str(fields["version"])
        else:
            return False
        return True

    # -- what stands below a table, and failures --

    def _footer(self, line: words.Line, kind: str, fields: Mapping[str, Value], stream: _Stream) -> bool:
        if kind == "bounds":
            self._ending(stream, line, unbounded=True).bounds = int(fields["value"])
        elif kind == "average":
            value = str(fields["value"]).replace("nan", "").lstrip("-")
            is_number = re.fullmatch(r"\d[\d.]*(?:e[+-]?\d+)?", value) and value.count(".") < 2
            self._ending(stream, line).average = float(value) if is_number else -1
        elif kind == "failed":
            self._failure(line)
        else:
            return False
        return True

    def _device(self, stream: _Stream, line: words.Line, device: BenchDevice, text: str) -> None:
        fitting = [
            run
            for run in stream.runs
            if not run.closed and not run.rows and run.title is None and device.rank not in run.devices
        ]
        run = fitting[-1] if fitting else self._next(stream, line, filled=True)
        if len(run.devices) >= MAX_DEVICES:
            return
        run.devices[device.rank] = device
        if device.host and device.host not in self._hosts and len(self._hosts) < MAX_HOSTS:
            self._hosts |= {device.host}
        run.devices_cut = run.devices_cut or text.rstrip().endswith("...")

    def _ending(self, stream: _Stream, line: words.Line, *, unbounded: bool = False) -> Draft:
        """The run that a line below a table belongs to; `unbounded` where it must lack its count of wrong values."""
        self._end_row(stream)
        able = [run for run in stream.runs if not run.closed and not (unbounded and run.bounds is not None)]
        return able[-1] if able else self._begin(stream, line)

    def _failure(self, line: words.Line) -> None:
        """A failure belongs to the newest run, whichever process says it; without one it is a run that never began."""
        newest = self._newest
        if newest is not None and newest.closed and newest.bounds and not self._named:
            return  # a run with wrong values ends with an exit code
        run = self._current or self._begin(self._streams.setdefault(line.key, _Stream()), line)
        quote = line.text.strip()[:MAX_QUOTE]
        if len(run.errors) < MAX_ERRORS and quote not in run.errors:
            run.errors.append(quote)
            run.failures.append(Origin(self.source, line.number, quote))

    def _leave(self, number: int, text: str, why: str) -> None:
        """Count a line that was not understood under its shape: what is left when numbers are taken out."""
        self.made.left += 1
        if why:
            if len(self.made.unread) < MAX_SHAPES:
                self.made.unread.append(UnreadLine(self.source, number, text, why))
            return
        shape = words.LIKE["digits"].sub("0", text)[:120]
        count, first_number, first_text = self._shapes.get(shape, (0, number, text))
        if count or len(self._shapes) < MAX_SHAPES:
            self._shapes[shape] = count + 1, first_number, first_text
