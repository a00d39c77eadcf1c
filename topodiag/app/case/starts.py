"""Where a program was started again into the same text, by its first lines, which stand in it once more; and which
ranks were behind when it ended."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise, takewhile
from string import ascii_letters

from topodiag.evidence.signatures.literals import Finder, Window
from topodiag.evidence.signatures.wrappers import unwrap
from topodiag.lazy import regex
from topodiag.words.own_data import patterns

_MOST_LINES, _MOST_HEADS = 20, 4
"""Lines at the begin of a text among which heads are looked for, and heads that are."""
_MOST_ENDS = 1000
"""Tracebacks of which the lines are kept: more show nothing else."""
_MOST_BETWEEN = 2
"""Warnings between the two lines of a head."""
_LEAST_LETTERS, _MOST_LINE = 8, 400
"""Of a line of a head: one with fewer letters stands in a text by chance."""
_FELL, _FULL = b"Traceback (most recent call last)", b"100%|"
BAR = patterns("app/case/texts", "lines")["bar"]
"""A bar of tqdm (format_meter of tqdm/std.py): what it has counted, and of how many."""
_TIME = regex(rb"\d+(?:[-/:.,T ]\d+){2,}")
_PASSING = regex(
    rb"(?i)warn|error|traceback|  File \"|exception|^\s*[|+#=*-]|^(?:\[[^\]]{1,40}\]:?)? {4}"
    rb"|job terminated\.|termination \("
)
"""What is no head: a process prints a warning, an error or lines of a source at any time, a monitor its table, a
scheduler an end."""


class Starts:
    """The places at which heads of a text stand: two lines in a row among its first ones, the same but for dates and
    times, with warnings between them perhaps. Lines that stand twice among the first ones already are none; below the
    traceback of a first launch a later one stands."""

    def __init__(self) -> None:
        self._lines: list[set[int]] = []
        self._fell: list[int] = []
        self._full: dict[str, int] = {}
        """The line of the first full bar, by how many it counts."""

    def last(self, ended: Iterable[int], done: int = 0) -> int:
        """The line on which the last launch began, 0 where the text shows one; `ended` are lines on which processes
        did. A head stands as often in each launch as between two ends, or above the first: ranks come up one after the
        other. The head that stands most often counts: others are torn by lines of another process. What began below
        the last end, above a line on which the work was `done`, is a launch however often its head stands."""
        lines = sorted(max(self._lines, key=len, default=()))
        ends = [bisect(lines, line) for line in sorted({*ended, *self._fell})]
        if ends and any(line < done for line in lines[ends[-1] :]):
            return lines[ends[-1]]
        heads = [here - above for above, here in pairwise([0, *ends]) if here > above]
        count = min(heads[0], sorted(heads)[len(heads) // 2]) if heads else 0
        return lines[-count] if 0 < count < len(lines) else 0

    def counts_anew(self, line: str, done: int) -> bool:
        """Whether a text ends with this line in a bar of as many as one that was full when work was `done`: the same
        work goes on with other settings. A bar of another length is of an evaluation, and one that was taken off the
        screen has only blanks behind it."""
        bars = list(BAR.finditer(line.rpartition("\r")[2])) if self._full else []
        return bool(bars) and bars[-1][1] != bars[-1][2] and self._full.get(bars[-1][2], done) < done

    def _fill(self, window: Window, place: int) -> None:
        bar = BAR.match(window.data[place : place + _MOST_LINE].decode("utf-8", "replace"))
        if bar is not None and bar[1] == bar[2]:
            self._full.setdefault(bar[2], window.line_of(place))

    def seen(self, windows: Iterable[Window]) -> Iterator[Window]:
        """The same windows, in which the heads are looked for on their way."""
        heads: list[_Head] = []
        known: Finder | None = None
        for window in windows:
            if known is None:
                heads = _heads(window.data)[:_MOST_HEADS]
                known = Finder([_FELL, _FULL, *(head.words for head in heads)])
                self._lines = [head.lines for head in heads]
            for place, number in window.owned(known.hits(window.data)):
                if number > 1:
                    heads[number - 2].meet(window, place)
                elif number:
                    self._fill(window, place)
                elif len(self._fell) < _MOST_ENDS:
                    self._fell.append(window.line_of(place))
            yield window


class _Head:
    """A head, and the `lines` on which it stands; `words` of its first line are the same wherever that is."""

    def __init__(self, first: int, *text: bytes) -> None:
        self._text = text
        # Of two as long the latter: a label, which stands on all lines of a process, comes first.
        self.words = max(reversed(_TIME.split(text[0])), key=len)
        self.lines = {first}

    def meet(self, window: Window, place: int) -> None:
        """A line with its words; where it stands is known of the first one."""
        line = window.line_of(place)
        begin = window.data.rfind(b"\n", 0, place) + 1
        if line not in self.lines and self._pattern.match(window.data, begin) is not None:
            self.lines.add(line)

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        """Both lines, with any dates and times. Few texts have one twice, and a pattern is dear."""
        first, second = (_TIME.pattern.join(map(re.escape, _TIME.split(line))) for line in self._text)
        return regex(first + rb"\s*\n(?:.*\n){0,%d}?" % _MOST_BETWEEN + second + rb"\s*$", re.M)


def _heads(text: bytes) -> list[_Head]:
    """The heads of a text that begins so, below a traceback where none stands above one: a first launch may fail before
    it prints a line. None of a text that ends there, as no other launch stands below."""
    parts = text.split(b"\n", _MOST_LINES)
    if len(parts) <= _MOST_LINES:
        return []
    lines = [(number, line.rstrip()) for number, line in enumerate(parts[:_MOST_LINES], 1)]
    above = list(takewhile(lambda line: _FELL not in line[1], lines))
    return _heads_of(above) or _heads_of(lines[len(above) :])


def _heads_of(lines: Sequence[tuple[int, bytes]]) -> list[_Head]:
    """Those of numbered lines."""
    pairs = list(pairwise(line for line in lines if _PASSING.search(line[1]) is None))
    texts = [(above[1], below[1]) for above, below in pairs]
    return [
        _Head(number, first, second)
        for (number, first), (other, second) in pairs
        if other - number <= _MOST_BETWEEN + 1 and texts.count((first, second)) == 1
        if _is_head(first) and _is_head(second)
    ]


def _is_head(line: bytes) -> bool:
    return _letters(line) >= _LEAST_LETTERS and len(line) <= _MOST_LINE


def _letters(line: bytes) -> int:
    return len(line) - len(line.translate(None, ascii_letters.encode()))


_MOST_SHARE = 0.25
"""Share of the ranks above which nobody is behind: the text ended while they printed."""


def ranks_behind(lines: Mapping[str, int]) -> tuple[tuple[int, ...], str]:
    """The ranks whose last line all others printed above theirs, and the line that these lack; () and "" without such.
    `lines` are the last lines of a text with the numbers on which they stand last; a launcher's label says whose each
    is. What a rank printed never before says nothing of it: it may be of the others alone."""
    own: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for text, number in lines.items():
        bare = unwrap(text)
        if bare.rank >= 0 and not bare.text.startswith(("slurmstepd:", "srun:")):
            own[bare.rank][re.sub(rf"\b{bare.rank}\b", "<rank>", bare.text, count=1)] = number
    last = {rank: max(numbers, key=numbers.__getitem__) for rank, numbers in own.items()}
    newest = max(Counter(last.values()).items(), key=lambda pair: pair[1], default=("", 0))[0]
    late = sorted(rank for rank, words in last.items() if words != newest)
    before = {last[rank] for rank in late}
    if len(before) != 1 or len(late) > _MOST_SHARE * len(last) or not all(before < own[rank].keys() for rank in own):
        return (), ""
    # Where lines come in rounds: who printed the newest one in this round is ahead, not behind.
    began = min(own[rank][words] for rank in own.keys() - late for words in before)
    is_late = all(own[rank].get(newest, 0) < began for rank in late)
    # Steps differ in their numbers alone.
    shapes = [{re.sub(r"\d+", "0", words) for words in own[rank]} for rank in late]
    is_theirs = re.sub(r"\d+", "0", newest) in set.intersection(*shapes)
    return (tuple(late), newest.replace("<rank>", str(late[0]))) if is_late and is_theirs else ((), "")
