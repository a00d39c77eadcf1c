"""Where a program was started again into the same text: its first lines stand in it once more."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice, pairwise

from topodiag.lazy import regex

_MOST_LINES, _MOST_HEADS = 20, 4
"""Lines at the begin of a text among which heads are looked for, and heads that are."""
_LEAST_LETTERS, _MOST_LINE = 8, 400
"""Of a line of a head: one with fewer letters stands in a text by chance."""
_TIME = regex(rb"\d+(?:[-/:.,T ]\d+){2,}")
_PASSING = regex(rb"(?i)warn|error|traceback|  File \"|exception|^\s*[|+#=*-]")
"""What is no head: a process prints a warning or an error at any time, and a monitor its table again."""


class Starts:
    """The places at which heads of a text stand: two lines in a row among its first ones, the same but for dates and
    times. Lines that stand twice among the first ones already are none."""

    def __init__(self) -> None:
        self._first = b""
        self._lines: defaultdict[bytes, set[int]] = defaultdict(set)

    @property
    def lines(self) -> tuple[int, ...]:
        """Where the head stands that stands most often: of others some are torn by lines of another process."""
        return tuple(sorted(max(self._lines.values(), key=len, default=())))

    def counted(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The same blocks, in which the heads are looked for on their way."""
        above, kept = 0, b""
        for block in blocks:
            self._first = self._first or block
            text = kept + block
            for words, head in self._heads:
                at = text.find(words)
                while at >= 0:
                    begin = text.rfind(b"\n", 0, at) + 1
                    if head.match(text, begin) is not None:
                        self._lines[head.pattern].add(above - kept.count(b"\n") + text.count(b"\n", 0, begin) + 1)
                    at = text.find(words, at + len(words))
            above += block.count(b"\n")
            kept = text[-2 * _MOST_LINE :]
            yield block

    @cached_property
    def _heads(self) -> tuple[tuple[bytes, re.Pattern[bytes]], ...]:
        """Each head, after words of its first line that are the same wherever it stands."""
        lines = [line.rstrip() for line in self._first.split(b"\n", _MOST_LINES)[:_MOST_LINES]]
        pairs = list(pairwise(lines))
        heads = (pair for pair in pairs if pairs.count(pair) == 1 and _is_head(*pair))
        return tuple(_pattern(*pair) for pair in islice(heads, _MOST_HEADS))


def _is_head(*lines: bytes) -> bool:
    long = all(_letters(line) >= _LEAST_LETTERS and len(line) <= _MOST_LINE for line in lines)
    return long and not any(map(_PASSING.search, lines))


def _letters(line: bytes) -> int:
    return sum(map(str.isalpha, line.decode("ascii", "ignore")))


def _pattern(one: bytes, other: bytes) -> tuple[bytes, re.Pattern[bytes]]:
    first, second = (_TIME.pattern.join(map(re.escape, _TIME.split(line))) for line in (one, other))
    return max(_TIME.split(one), key=len), regex(first + rb"\s*\n" + second + rb"\s*$", re.M)
