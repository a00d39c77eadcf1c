"""The communicator of a log in which no line names one: who took part, by the lines of rings, trees and connections.

An excerpt (a `grep`, eight lines of a forum) has rarely an Init line. What it prints is of one communicator as long as
each process and GPU is one rank and each rank is one of them; where that does not hold there are several, and nothing
says which line is of which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.rebuild.frame import Frame, Ints
from topodiag.evidence.nccl_log.rebuild.members import MOST_RANKS, Member, Processes
from topodiag.evidence.nccl_log.rebuild.places import Places
from topodiag.evidence.nccl_log.rebuild.printed import printed_sizes
from topodiag.evidence.nccl_log.tables.facts import Table

Lane = tuple[int, int]
"""Process, and the device that the head names."""

NO_GEN = -2
"""Of no row: members of this kind are never found by their context."""

MOST_ROWS = 1 << 20
"""Connections of a log in which no communicator is looked for: an excerpt is small."""

_OTHERS = {"ring": ("prev", "next"), "tree": ("up", "d0", "d1", "d2"), "conn": ("rank", "peer")}
"""Columns that name ranks beside the one that prints."""


_Lanes = dict[Lane, dict[int, tuple[int, int, int]]]
"""The ranks of each lane with its first line (offset, thread, line)."""


def inferred_members(frame: Frame, processes: Processes) -> list[Member]:
    """The members of the one communicator that the lines are of; none where they do not fit one. `nranks` is what its
    operations print (`[nranks=16]`), else the highest rank named and one: there may be more."""
    lanes, highest = _lanes(frame, processes)
    if not _one_communicator(lanes, processes):
        return []
    sizes = printed_sizes(frame)
    size = max(highest + 1, sizes[0] if len(sizes) == 1 else 0)
    size = size if size <= MOST_RANKS else -1
    members = []
    for (process, dev), ranks in sorted(lanes.items()):
        known = [rank for rank in ranks if rank >= 0] or [-1]
        for rank in known:
            offset, thread, line = ranks[rank]
            members.append(Member(process, 0, NO_GEN, offset, thread, line, rank, size, cuda_dev=dev))
    return members


class InferredPlaces(Places):
    """Members by the rank that a row names, else by the process and the device of its head."""

    def __init__(self, frame: Frame, processes: Processes, members: Sequence[Member]) -> None:
        super().__init__(frame, processes, members)
        highest = max((member.rank for member in members), default=-1)
        self.by_rank = np.full(highest + 2, -1, np.int64)
        self.by_lane: dict[Lane, int] = {}
        self.by_process: dict[int, int] = {}
        for number, member in enumerate(members):
            if member.rank >= 0:
                self.by_rank[member.rank] = number
            self.by_lane.setdefault((member.process, member.cuda_dev), number)
            self.by_process.setdefault(member.process, number)

    def _of_rows(self, table: str, rows: Table, process: Ints) -> Ints:
        thread = rows["thread"]
        devs = self.frame["threads"]["dev"][thread]
        owners = zip(process.tolist(), devs.tolist(), strict=True)
        places = np.array(
            [self.by_lane.get(lane, self.by_process.get(lane[0], -1)) for lane in owners], np.int64
        )  # fmt: skip
        if table in _OTHERS and len(rows):
            mine = _mine(table, rows)
            known = (mine >= 0) & (mine < len(self.by_rank) - 1)
            seats = np.where(known, self.by_rank[np.where(known, mine, 0)], -1)
            places = np.where(seats >= 0, seats, places)
        return places

    def of_connections(self, rows: Table, process: Ints) -> Ints:
        return self._of_rows("conn", rows, process)


def _mine(table: str, rows: Table) -> npt.NDArray[Any]:
    """The rank that printed each row: the receiver prints what it receives."""
    if table != "conn":
        return rows["rank"]
    return np.where(rows["direction"] == 2, rows["peer"], rows["rank"])


def _lanes(frame: Frame, processes: Processes) -> tuple[_Lanes, int]:
    """The lanes, and the highest rank that any line names; none where the log is too large to be an excerpt."""
    lanes: _Lanes = defaultdict(dict)
    highest = -1
    for table, rows in _tables(frame) if frame.connection_rows <= MOST_ROWS else ():
        thread, offset = rows["thread"], rows["offset"]
        process = processes.of(thread, offset)
        devs = frame["threads"]["dev"][thread]
        mine = _mine(table, rows) if table in _OTHERS else np.where(table == "order", 0, np.full(len(rows), -1))
        columns = (process, devs, mine, offset, thread, rows["line"])
        for owner, dev, rank, *place in zip(*(column.tolist() for column in columns), strict=True):
            if owner >= 0:
                ranks = lanes[owner, dev]
                ranks[rank] = min(tuple(place), ranks.get(rank, tuple(place)))
        named = (mine, *(rows[name] for name in _OTHERS.get(table, ())))
        highest = max(highest, *(int(ranks.max(initial=-1)) for ranks in named))
        if table == "order":
            whole = np.flatnonzero(~rows["cut"]).tolist()
            highest = max([highest, *(len(rows.word("ranks", row).split()) - 1 for row in whole)])
    return lanes, highest


def _tables(frame: Frame) -> Iterator[tuple[str, Table]]:
    for name in ("ring", "tree", "order", "channels", "choice"):
        if len(frame[name]):
            yield name, frame[name]
    for rows in frame.connections():
        yield "conn", rows


def _one_communicator(lanes: _Lanes, processes: Processes) -> bool:
    """Whether each process and GPU is one rank, and each rank one of them. Where heads are gone, all are in one."""
    owner: dict[int, Lane] = {}
    for lane, ranks in lanes.items():
        known = [rank for rank in ranks if rank >= 0]
        if len(known) > 1 and processes.host[lane[0]]:
            return False
        if any(owner.setdefault(rank, lane) != lane for rank in known):
            return False
    return bool(lanes)


def untold(inferred: bool) -> str:
    """Why the ranks of a job may not be those of its world."""
    if inferred:
        return "no line names a communicator: ranks are those that print, and there may be more"
    return "the communicator of all ranks is not in the logs: ranks are numbered by process"
