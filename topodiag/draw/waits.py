"""A hang: who waits in the collective since when, and who never came. The row of a missing rank is blank."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from topodiag.checks.job.hang.dumps import Front, fronts_of
from topodiag.draw.svg import Canvas
from topodiag.lazy import dataclass
from topodiag.model.job import Job
from topodiag.words.units import fold_numbers, plural, spell_s

WIDE, LABEL, TOP, ROW, BAR = 640, 160, 66, 26, 17
"""The picture, the names of ranks, what stands above the rows, a row and its bar, px."""
MOST_MISSING, MOST_WAITING = 8, 12
"""Rows of each kind; of more ranks the rest is one row."""


@dataclass(frozen=True, slots=True)
class _Row:
    """Ranks of one row. `start`, `end`: from when to when the first and the last of them began to wait, seconds of the
    epoch, None where no dump has it or the ranks never came."""

    name: str
    missing: bool
    words: str
    start: float | None = None
    end: float | None = None


def draw_waits(job: Job, *, prefix: str = "") -> str:
    """The picture of the process group that most ranks wait in, "" where the flight recorder shows none."""
    fronts = [front for front in fronts_of(job) if front.waits]
    if not fronts:
        return ""
    front = max(fronts, key=lambda front: len(front.entries))
    number = max(front.last.values())
    operation = front.entries[0][1]
    missing = sorted(rank for rank, last in front.last.items() if last < number)
    starts = _starts(job, front, number)
    rows = [*_missing(job, front, missing), *_waiting(job, starts)]
    title = f"Who waits in {operation} number {number}"
    waiting = f"{plural(len(starts), 'rank')} {'waits' if len(starts) == 1 else 'wait'}"
    desc = f"{waiting}, {plural(len(missing), 'rank')} never entered: {fold_numbers(missing)}"
    canvas = Canvas(title, desc, prefix)
    canvas.title_lines(f"process group {front.words}: {desc}", WIDE)
    _draw(canvas, rows)
    bottom = TOP + len(rows) * ROW
    unseen, timed = front.size - len(front.last), any(row.start is not None for row in rows)
    notes = ["bars begin where a rank enqueued the collective, by the clock of its host"] if timed else []
    notes += [f"{plural(unseen, 'rank')} left no dump"] if unseen > 0 else []
    if notes:
        canvas.text(0, bottom + 40, "; ".join(notes), "small", room=WIDE, size=10.5)
    return canvas.document(WIDE, bottom + 48)


def _starts(job: Job, front: Front, number: int) -> dict[int, float | None]:
    """When each rank in front enqueued the collective that it waits in; None where its dump has no time."""
    starts: dict[int, float | None] = {}
    for record in job.flight:
        for place, (group, sequence, _, state) in enumerate(record.entries):
            if group == front.group and sequence == number and state != "completed":
                created = record.created_s[place] if place < len(record.created_s) else float("nan")
                starts[record.rank] = created if isfinite(created) else None
    return dict(sorted(starts.items(), key=lambda item: (item[1] is None, item[1] or 0.0, item[0])))


def _name(job: Job, rank: int) -> str:
    known = job.by_rank.get(rank)
    return f"rank {rank}" + (f" {known.host}" if known and known.host else "")


def _missing(job: Job, front: Front, ranks: Sequence[int]) -> list[_Row]:
    rows = [_Row(_name(job, rank), True, f"never entered; its last is number {front.last[rank]}") for rank in ranks]
    left = ranks[MOST_MISSING:]
    return [*rows[:MOST_MISSING], *([_Row(f"{len(left)} more", True, "never entered")] if left else [])]


def _waiting(job: Job, starts: dict[int, float | None]) -> list[_Row]:
    ranks = [*starts]
    rows = [_Row(_name(job, rank), False, "waits", starts[rank], starts[rank]) for rank in ranks]
    if len(rows) <= MOST_WAITING:
        return rows
    # The first and the last to come say most: the others lie between them.
    middle = ranks[MOST_WAITING - 2 : -1]
    known = [at for rank in middle if (at := starts[rank]) is not None]
    words = f"wait, ranks {fold_numbers(middle)}"
    fold = _Row(f"{len(middle)} more", False, words, min(known, default=None), max(known, default=None))
    return [*rows[: MOST_WAITING - 2], fold, rows[-1]]


def _draw(canvas: Canvas, rows: Sequence[_Row]) -> None:
    times = [at for row in rows for at in (row.start, row.end) if at is not None]
    begin, last = (min(times), max(times)) if times else (0.0, 0.0)
    # The hang itself has no end: the starts share the first half, and every bar runs on.
    span = max(last - begin, 1e-3) * 2
    left, room = float(LABEL), WIDE - LABEL - 12
    for number, row in enumerate(rows):
        y = TOP + number * ROW
        canvas.text(0, y + 13, row.name, "badtext" if row.missing else "", room=LABEL - 12)
        if row.missing:
            canvas.rect(left, y, room, BAR, "absent", row.words)
            canvas.text(left + 8, y + 13, row.words, "badtext", room=room - 16)
            continue
        start = left + room * ((row.start if row.start is not None else begin) - begin) / span
        end = left + room * ((row.end if row.end is not None else begin) - begin) / span
        if end > start:
            canvas.rect(start, y, end - start, BAR, "netbox", row.words, hatch="nethatch")
        canvas.rect(end, y, left + room - end, BAR, "netbox", row.words)
        words = "waits, its dump has no time" if row.start is None and times else row.words
        canvas.text(end + 8, y + 12, words, "small", room=left + room - end - 12, size=10.5)
    if times:
        bottom = TOP + len(rows) * ROW
        canvas.line(left, bottom, left + room, bottom, "axis")
        canvas.text(left, bottom + 16, "0 s", "small")
        at = left + room * (last - begin) / span
        if at > left + 60:
            canvas.text(at, bottom + 16, f"+{spell_s(last - begin)}", "small", "middle")
        canvas.text(left + room, bottom + 16, "still waiting", "small", "end")
