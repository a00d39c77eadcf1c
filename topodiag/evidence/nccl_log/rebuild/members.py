"""Who took part: processes, and each process's memberships of communicators.

A process is (host, pid), over all files that it wrote. Several files of one (host, pid) that each begin a process (they
name the bootstrap interface or the driver) are processes of their own: containers where every pid is 1, and restarts.
Within one file a second beginning after the first Init line starts a new process.
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from math import inf, nan
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.grammar.spoken import STATED
from topodiag.evidence.nccl_log.rebuild.frame import Frame, Ints, in_pieces
from topodiag.lazy import dataclass
from topodiag.words.units import grouped

Key = tuple[int, str, int]
"""File, host and pid."""

_BEGINNINGS = ("bootstrap", "driver")
_ENDS = ("destroy", "abort", "revoke")

OF_ANYBODY = ("version", "rccl", "git version", "matrix", *STATED)
"""Kinds of text that are printed without a head."""

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
    for _, thread, offset in in_pieces(np.arange(len(init)), init["thread"], init["offset"]):
        first_init[keys[thread]] = min(offset, first_init.get(keys[thread], offset))
    begun: dict[Key, dict[str, list[int]]] = {}
    kinds = text.words["kind"]
    chosen = np.flatnonzero(text.is_word("kind", *_BEGINNINGS))
    for _, thread, kind, offset in in_pieces(chosen, text["thread"], text["kind"], text["offset"]):
        begun.setdefault(keys[thread], {}).setdefault(kinds[kind], []).append(offset)
    processes = Processes()
    owner: dict[tuple[str, int], int] = {}
    real = sorted(_real(frame, keys), key=lambda key: (key not in first_init, key[1], key[2], key[0]))
    for key in real:
        _, host, pid = key
        if (host, pid) in owner and not (key in begun and key in first_init):
            processes.starts[key] = ([0], [owner[host, pid]])
            continue
        offsets = [0, *_restarts(begun.get(key, {}), first_init.get(key, inf))]
        which = [len(processes.host) + place for place in range(len(offsets))]
        processes.host += [host] * len(offsets)
        processes.pid += [pid] * len(offsets)
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
        spoke.update(frame[table]["thread"].tolist())
    text = frame["text"]
    spoke.update(text["thread"][~text.is_word("kind", *OF_ANYBODY)].tolist())
    event = frame["event"]
    spoke.update(event["thread"][event.is_word("level", "WARN", "UNWIND")].tolist())
    for rows in frame.connections():
        spoke.update(rows["thread"].tolist())
    return named | {key for thread, key in bare if thread in spoke}


def _restarts(begun: dict[str, list[int]], first_init: float) -> list[int]:
    """Where the same pid begins anew: a line that a process prints once, again after its first communicator."""
    several = ([at for at in sorted(begun.get(kind, []))[1:] if at > first_init] for kind in _BEGINNINGS)
    return next(filter(None, several), [])


@dataclass(slots=True)
class Member:
    """One process's part in one communicator: what its Init lines say."""

    process: int
    ctx: int
    gen: int
    offset: int
    thread: int
    line: int
    stated: Sequence[int] = ()
    """What the first of its lines says, which most others repeat: the fields from `rank` to `local_ranks`, in their
    order."""
    rank: int = -1
    nranks: int = -1
    comm_id: int = 0
    cuda_dev: int = -1
    nvml_dev: int = -1
    bus_id: int = -1
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
    aborted: bool = False
    ordinal: int = 0
    """Its place among the communicators of its GPU's process."""
    above: Member | None = None
    """The same process's part in the parent."""
    key: Hashable = None
    """What all members of its communicator have in common."""
    complete_at: int = -1
    complete_ts: float = nan
    """Seconds since the epoch by the clock of its host, NaN without a time on the line."""

    def is_other(self, given: Sequence[int]) -> bool:
        """Whether a line speaks of another communicator at the same address: this one was destroyed, or differs."""
        own = zip((self.rank, self.nranks, self.comm_id), _GIVEN.values(), given, strict=False)
        return self.destroyed or any(known != value and nothing not in (known, value) for known, nothing, value in own)

    def take(self, given: Sequence[int]) -> None:
        """What a line says: the first that says something counts."""
        for (name, nothing), value in zip(_GIVEN.items(), given, strict=True):
            if value != nothing and getattr(self, name) == nothing:
                setattr(self, name, value)


_NAMES = ("ctx", "gen", "offset", "thread", "line", "event", "func", "ts")
_GIVEN = {
    "rank": -1, "nranks": -1, "comm_id": 0, "cuda_dev": -1, "nvml_dev": -1, "bus_id": -1, "parent": 0, "split": -1,
    "color": -1, "nodes": -1, "mnnvl": -1, "local_ranks": -1,
}  # fmt: skip
"""What a member's lines say, in the order of the fields of `Member`, and what stands where one says nothing."""
_SIZE = tuple(_GIVEN).index("nranks")


def find_members(frame: Frame, processes: Processes) -> list[Member]:
    """In the order of their first lines."""
    init = frame["init"]
    thread, offset, ranks, size = (init[name] for name in ("thread", "offset", "rank", "nranks"))
    process = processes.of(thread, offset)
    usable = (process >= 0) & (init["ctx"] != 0) & (size <= MOST_RANKS)
    usable &= ranks < np.where(size > 0, size, MOST_RANKS)  # beyond it is damaged, and would take as much memory
    order = np.lexsort((offset, frame["threads"]["file"][thread]))
    order = order[usable[order]]
    events, funcs = init.words["event"], init.words["func"]
    columns = [init[name] for name in (*_NAMES, *_GIVEN)]
    known: dict[tuple[int, int, int], Member] = {}
    latest: dict[tuple[int, int], Member] = {}
    members: list[Member] = []
    for _, owner, ctx, gen, at, by, line, code, func, ts, *given in in_pieces(order, process, *columns):
        event = events[code]
        is_end = event in _ENDS
        member = known.get((owner, ctx, gen))
        if member is None and gen < 0 and event != "start":
            member = latest.get((owner, ctx))
        if member is not None and not is_end and member.is_other(given):
            member = None
        if member is None:
            if is_end and given[_SIZE] < 0:
                continue
            member = Member(owner, ctx, gen, at, by, line, given, *given)  # type: ignore[arg-type]
            known[owner, ctx, gen] = latest[owner, ctx] = member
            members.append(member)
        elif given != member.stated:
            member.take(given)
        member.func = member.func or funcs[func]
        member.started |= event == "start"
        member.destroyed |= is_end
        member.aborted |= event == "abort"
        if event == "complete":
            member.completed, member.complete_at, member.complete_ts = True, at, ts
    return members


def lane(member: Member) -> tuple[int, int, int]:
    """The GPU of a process, the same in all its communicators."""
    return member.process, member.cuda_dev, member.bus_id


def by_process(members: Sequence[Member]) -> dict[int, list[int]]:
    """Members of each process, in order of their lines."""
    return grouped((member.process, i) for i, member in enumerate(members))
