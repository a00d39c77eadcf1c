"""Proof of life: what still ran, and when. Counted while a text is read; single lines are not kept."""

from __future__ import annotations

from math import nan

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin

LEAST_PROGRESS = 3
"""Lines of progress that prove that a job works: one or two may come out of a buffer."""
MOST_BUFFERED = 200
"""Lines that a program's buffer still held when it ended: they stand below the traceback, which has no buffer."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Lines of one kind of one text: steps of a training, throughput of a server, requests served, sizes finished by a
    benchmark, collectives finished.

    `kind` names what advances (`progress.step`), `number` how many such lines there are, `first` and `last` where they
    stand. Times are seconds since the epoch, NaN where the lines have none; `longest_gap_s` is the longest time between
    two neighbours, NaN with fewer than two times. `host` and `rank` are those before the lines, "" and -1 without.
    """

    kind: str
    number: int
    first: Origin
    last: Origin
    first_s: float = nan
    last_s: float = nan
    longest_gap_s: float = nan
    host: str = ""
    rank: int = -1
