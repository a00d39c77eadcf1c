"""Who took part: processes, and each process's memberships of communicators.

A process is (host, pid), over all files that it wrote. Several files of one (host, pid) that each begin a process (they
name the bootstrap interface or the driver) are processes of their own: containers where every pid is 1, and restarts.
Within one file a second beginning after the first Init line starts a new process.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import field
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.grammar.stated import STATED
from topodiag.evidence.nccl_log.rebuild.frame import Frame, Ints, by_owner, in_pieces
from topodiag.lazy import dataclass

Key = tuple[int, str, int]
"""File, host and pid."""

_BEGINNINGS = ("bootstrap", "driver")
_ENDS = ("destroy", "abort", "revoke")

OF_ANYBODY = ("version", "rccl", "git version", "matrix", *STATED)
"""Kinds of text that are printed without a head."""

_NEVER = (1 << 63) - 1

MOST_RANKS = 1 << 21
"""A larger communicator is a damaged number, and would take the memory of one."""


@dataclass(slots=True)
class Processes:
    """`host`, `pid` by process; which process a line of a thread belongs to, by its place."""

    host: list[str] = field(default_factory=list)
    pid: list[int] = field(default_factory=list)
    starts: dict[Key, tuple[list[int], list[int]]] = field(default_factory=dict)
    """By (file, host, pid): offsets where a process begins, and which."""
    first: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """By thread, the first of its processes, -1 for lines that nobody's head names."""
    restarted: Mapping[int, tuple[list[int], list[int]]] = field(default_factory=dict)
    """As `starts`, by thread, of those that several processes have had."""

    def of(self, thread: npt.NDArray[Any], offset: npt.NDArray[Any]) -> Ints:
        """Process of each row, -1 for lines that nobody's head names."""
        process: Ints = self.first[thread]
        if self.restarted:
            for row in np.flatnonzero(np.isin(thread, list(self.restarted))).tolist():
                offsets, which = self.restarted[int(thread[row])]
                process[row] = which[max(bisect.bisect_right(offsets, int(offset[row])) - 1, 0)]
        return process

    def by_file(self) -> dict[int, set[int]]:
        """The processes that print to each file."""
        files: dict[int, set[int]] = {}
        for (file, _, _), (_, which) in self.starts.items():
            files.setdefault(file, set()).update(which)
        return files


def find_processes(frame: Frame) -> Processes:
    threads, init, text = frame["threads"], frame["init"], frame["text"]
    keys = list(zip(threads["file"].tolist(), frame.hosts, threads["pid"].tolist(), strict=True))
    first_init: dict[Key, int] = {}
    earliest = np.full(threads.size, _NEVER)
    np.minimum.at(earliest, init.read("thread"), init.read("offset"))
    for key, offset in zip(keys, earliest.tolist(), strict=True):
        if offset < _NEVER:
            first_init[key] = min(offset, first_init.get(key, offset))
    begun: dict[Key, dict[str, list[int]]] = {}
    kinds = text.words["kind"]
    chosen = np.flatnonzero(text.is_word("kind", *_BEGINNINGS))
    for _, thread, kind, offset in in_pieces(chosen, text.read("thread"), text.read("kind"), text.read("offset")):
        begun.setdefault(keys[thread], {}).setdefault(kinds[kind], []).append(offset)
    processes = Processes()
    owner: dict[tuple[str, int], int] = {}
    real = sorted(_real(frame, keys), key=lambda key: (key not in first_init, key[1], key[2], key[0]))
    for key in real:
        _, host, pid = key
        if (host, pid) in owner and not (key in begun and key in first_init):
            processes.starts[key] = ([0], [owner[host, pid]])
            continue
        offsets = [0, *_restarts(begun.get(key, {}), first_init.get(key))]
        which = []
        for _ in offsets:
            which.append(len(processes.host))
            processes.host.append(host)
            processes.pid.append(pid)
        owner.setdefault((host, pid), which[0])
        processes.starts[key] = (offsets, which)
    starts = [processes.starts.get(key) for key in keys]
    processes.first = np.array([-1 if pair is None else pair[1][0] for pair in starts], np.int64)
    processes.restarted = {i: pair for i, pair in enumerate(starts) if pair is not None and len(pair[1]) > 1}
    return processes


def _real(frame: Frame, keys: Sequence[Key]) -> set[Key]:
    """Those that a head names; and of a file whose heads were all taken off, whoever printed what NCCL alone prints."""
    named = {key for key in keys if key[1]}
    whole = {file for file, _, _ in named}
    bare = [(thread, key) for thread, key in enumerate(keys) if not key[1] and key[0] not in whole]
    if not bare:
        return named
    spoke: set[int] = set()
    for table in ("init", "ring", "tree", "order", "channels", "print", "choice", "timing"):
        spoke.update(frame[table].read("thread").tolist())
    text = frame["text"]
    spoke.update(text.read("thread")[~text.is_word("kind", *OF_ANYBODY)].tolist())
    event = frame["event"]
    spoke.update(event.read("thread")[event.is_word("level", "WARN", "UNWIND")].tolist())
    for rows in frame.connections():
        spoke.update(rows.read("thread").tolist())
    return named | {key for thread, key in bare if thread in spoke}


def _restarts(begun: dict[str, list[int]], first_init: int | None) -> list[int]:
    """Where the same pid begins anew: a line that a process prints once, again after its first communicator."""
    if first_init is None:
        return []
    for kind in _BEGINNINGS:
        again = [offset for offset in sorted(begun.get(kind, []))[1:] if offset > first_init]
        if again:
            return again
    return []


@dataclass(slots=True)
class Member:
    """One process's part in one communicator: what its Init lines say."""

    process: int
    ctx: int
    gen: int
    offset: int
    thread: int
    line: int
    rank: int = -1
    nranks: int = -1
    cuda_dev: int = -1
    nvml_dev: int = -1
    bus_id: int = -1
    comm_id: int = 0
    parent: int = 0
    split: int = -1
    color: int = -1
    nodes: int = -1
    mnnvl: int = -1
    local_ranks: int = -1
    func: str = ""
    started: bool = False
    completed: bool = False
    destroyed: bool = False
    complete_at: int = -1
    complete_ts: float = nan
    """Seconds since the epoch by the clock of its host, NaN without a time on the line."""


_PLACE = ("ctx", "gen", "offset", "thread", "line")
"""Of a member's first line."""
_GIVEN = {
    "rank": -1, "nranks": -1, "cuda_dev": -1, "nvml_dev": -1, "bus_id": -1, "comm_id": 0, "parent": 0, "split": -1,
    "color": -1, "nodes": -1, "mnnvl": -1, "local_ranks": -1,
}  # fmt: skip
"""What the first of a member's lines that has it says, and what it is where none has it."""


def find_members(frame: Frame, processes: Processes) -> list[Member]:
    """In the order of their first lines."""
    init = frame["init"]
    order, _, starts = by_owner(*_told_apart(frame, processes))
    if not order.size:
        return []
    ends = np.append(starts[1:], len(order))
    first = order[starts]
    columns = [processes.of(init.read("thread")[first], init.read("offset")[first])]
    columns += [init.read(name)[first] for name in _PLACE]
    columns += [_first_given(init.read(name)[order], nothing, starts, ends) for name, nothing in _GIVEN.items()]
    words = init.words["func"]
    func = _first_given(init.read("func")[order], words.index("") if "" in words else -1, starts, ends)
    columns.append(np.array(words, object)[func])
    completed = init.is_word("event", "complete")[order]
    for flags in (init.is_word("event", "start")[order], completed, init.is_word("event", *_ENDS)[order]):
        columns.append(np.logical_or.reduceat(flags, starts))
    last = np.maximum.reduceat(np.where(completed, np.arange(len(order)), -1), starts)
    columns.append(np.where(last < 0, -1, init.read("offset")[order][last]))
    columns.append(np.where(last < 0, np.nan, init.read("ts")[order][last]))
    return [Member(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _first_given(values: npt.NDArray[Any], nothing: int, starts: Ints, ends: Ints) -> npt.NDArray[Any]:
    """Between each start and end, the first value that says something; `nothing` where none does."""
    at = np.append(np.flatnonzero(values != nothing), len(values))
    first = at[np.searchsorted(at, starts)]
    return np.where(first < ends, values.take(first, mode="clip"), nothing)


@dataclass(slots=True)
class _Address:
    """What tells a member from another one at the same address."""

    number: int
    rank: int = -1
    nranks: int = -1
    comm_id: int = 0
    destroyed: bool = False

    def is_other(self, rank: int, nranks: int, comm_id: int) -> bool:
        """Whether the line speaks of another communicator: this one was destroyed, or differs."""
        return (
            self.destroyed
            or (rank != -1 and self.rank not in (-1, rank))
            or (nranks != -1 and self.nranks not in (-1, nranks))
            or (comm_id != 0 and self.comm_id not in (0, comm_id))
        )

    def take(self, rank: int, nranks: int, comm_id: int) -> None:
        self.rank = self.rank if self.rank != -1 else rank
        self.nranks = self.nranks if self.nranks != -1 else nranks
        self.comm_id = self.comm_id or comm_id


def _told_apart(frame: Frame, processes: Processes) -> tuple[Ints, Ints]:
    """The rows of Init lines in the order of print, and by row the number of the member that it is of, -1 none."""
    init = frame["init"]
    thread, offset = init.read("thread"), init.read("offset")
    process = processes.of(thread, offset)
    ranks, size = init.read("rank"), init.read("nranks")
    usable = (process >= 0) & (init.read("ctx") != 0) & (size <= MOST_RANKS)
    usable &= ranks < np.where(size > 0, size, MOST_RANKS)  # beyond it is damaged, and would take as much memory
    order = np.lexsort((offset, frame["threads"]["file"][thread]))
    order = order[usable[order]]
    starts, ends = init.is_word("event", "start"), init.is_word("event", *_ENDS)
    names = ("ctx", "gen", "rank", "nranks", "comm_id")
    known: dict[tuple[int, int, int], _Address] = {}
    latest: dict[tuple[int, int], _Address] = {}
    members = 0
    numbers = np.full(init.size, -1, np.int64)
    for row, owner, start, end, ctx, gen, rank, nranks, comm_id in in_pieces(
        order, process, starts, ends, *(init.read(name) for name in names)
    ):
        member = known.get((owner, ctx, gen))
        if member is None and gen < 0 and not start:
            member = latest.get((owner, ctx))
        if member is not None and not end and member.is_other(rank, nranks, comm_id):
            member = None
        if member is None:
            if end and nranks < 0:
                continue
            member = known[owner, ctx, gen] = latest[owner, ctx] = _Address(members)
            members += 1
        member.take(rank, nranks, comm_id)
        member.destroyed = member.destroyed or end == 1
        numbers[row] = member.number
    return order, numbers


def lane(member: Member) -> tuple[int, int, int]:
    """The GPU of a process, the same in all its communicators."""
    return member.process, member.cuda_dev, member.bus_id


def by_process(members: Sequence[Member]) -> dict[int, list[int]]:
    """Members of each process, in order of their lines."""
    numbers: dict[int, list[int]] = {}
    for i, member in enumerate(members):
        numbers.setdefault(member.process, []).append(i)
    return numbers


def torn_down(world: Sequence[int], own: Sequence[Member]) -> tuple[int, ...]:
    """World ranks of the members that were torn down."""
    return tuple(rank for rank, member in zip(world, own, strict=True) if member.destroyed and rank >= 0)
