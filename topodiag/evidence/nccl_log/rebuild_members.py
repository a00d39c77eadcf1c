"""Who took part: processes, and each process's memberships of communicators.

A process is (host, pid), over all files that it wrote. Several files of one (host, pid) that each begin a process (they
name the bootstrap interface or the driver) are processes of their own: containers where every pid is 1, and restarts.
Within one file a second beginning after the first Init line starts a new process.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from topodiag.evidence.nccl_log.rebuild_frame import Frame, Ints

_BEGINNINGS = ("bootstrap", "driver")

_AT_ONCE = 1 << 16
"""Lines that are numbers of Python at the same time."""

_NEVER = (1 << 63) - 1

MOST_RANKS = 1 << 21
"""A larger communicator is a damaged number, and would take the memory of one."""


@dataclass(slots=True)
class Processes:
    """`host`, `pid` by process; which process a line of a thread belongs to, by its place."""

    host: list[str] = field(default_factory=list)
    pid: list[int] = field(default_factory=list)
    starts: dict[tuple[int, str, int], tuple[list[int], list[int]]] = field(default_factory=dict)
    """By (file, host, pid): offsets where a process begins, and which."""

    def of(self, frame: Frame, thread: Ints, offset: Ints) -> Ints:
        """Process of each row, -1 for lines that nobody's head names."""
        files, pids = frame["threads"]["file"].tolist(), frame["threads"]["pid"].tolist()
        simple = np.full(len(frame.hosts), -1, np.int64)
        several = np.zeros(len(frame.hosts), bool)
        for i, host in enumerate(frame.hosts):
            found = self.starts.get((files[i], host, pids[i]))
            if found is not None:
                simple[i] = found[1][0]
                several[i] = len(found[1]) > 1
        made = simple[thread] if len(thread) else np.zeros(0, np.int64)
        for row in np.flatnonzero(several[thread]).tolist() if several.any() and len(thread) else []:
            i = int(thread[row])
            offsets, which = self.starts[files[i], frame.hosts[i], pids[i]]
            made[row] = which[max(bisect.bisect_right(offsets, int(offset[row])) - 1, 0)]
        return made


def find_processes(frame: Frame) -> Processes:
    threads, init, text = frame["threads"], frame["init"], frame["text"]
    files, pids = threads["file"].tolist(), threads["pid"].tolist()
    keys = [(files[i], frame.hosts[i], pids[i]) for i in range(threads.size)]
    first_init: dict[tuple[int, str, int], int] = {}
    first = np.full(threads.size, _NEVER)
    np.minimum.at(first, init.read("thread"), init.read("offset"))
    for key, offset in zip(keys, first.tolist(), strict=True):
        if offset < _NEVER:
            first_init[key] = min(offset, first_init.get(key, offset))
    begun: dict[tuple[int, str, int], dict[str, list[int]]] = {}
    kinds = text.words["kind"]
    for row in np.flatnonzero(text.is_word("kind", *_BEGINNINGS)).tolist():
        key = keys[int(text["thread"][row])]
        kind = kinds[int(text["kind"][row])]
        begun.setdefault(key, {}).setdefault(kind, []).append(int(text["offset"][row]))
    made = Processes()
    owner: dict[tuple[str, int], int] = {}
    real = sorted({key for key in keys if key[1]}, key=lambda key: (key not in first_init, key[1], key[2], key[0]))
    for key in real:
        _, host, pid = key
        if (host, pid) in owner and not (key in begun and key in first_init):
            made.starts[key] = ([0], [owner[host, pid]])
            continue
        offsets = [0, *_restarts(begun.get(key, {}), first_init.get(key))]
        which = []
        for _ in offsets:
            which.append(len(made.host))
            made.host.append(host)
            made.pid.append(pid)
        owner.setdefault((host, pid), which[0])
        made.starts[key] = (offsets, which)
    return made


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
    func: str = ""
    nodes: int = -1
    mnnvl: int = -1
    started: bool = False
    completed: bool = False
    destroyed: bool = False
    complete_at: int = -1
    ts: float = float("nan")
    starts: int = 0
    completes: int = 0


def find_members(frame: Frame, processes: Processes) -> list[Member]:
    init = frame["init"]
    of_process = processes.of(frame, init["thread"], init["offset"])
    order = np.lexsort((init["offset"], frame["threads"]["file"][init["thread"]]))
    names = (
        "event", "func", "ctx", "gen", "offset", "thread", "line", "count", "rank", "nranks", "cuda_dev", "nvml_dev",
        "bus_id", "comm_id", "parent", "split", "color", "nodes", "mnnvl", "ts",
    )  # fmt: skip
    made: list[Member] = []
    known: dict[tuple[int, int, int], Member] = {}
    latest: dict[tuple[int, int], Member] = {}
    for own in np.split(order, range(_AT_ONCE, len(order), _AT_ONCE)):
        process = of_process[own].tolist()
        lists = {name: init.read(name)[own].tolist() for name in names}
        for row in range(len(own)):
            event = init.words["event"][lists["event"][row]]
            ctx, gen = lists["ctx"][row], lists["gen"][row]
            if process[row] < 0 or not ctx or lists["nranks"][row] > MOST_RANKS:
                continue
            member = known.get((process[row], ctx, gen))
            if member is None and event != "start":
                member = latest.get((process[row], ctx)) if gen < 0 else None
            if member is not None and _other(member, lists, row, event):
                member = None
            if member is None:
                if event in ("destroy", "abort", "revoke") and lists["nranks"][row] < 0:
                    continue
                member = Member(
                    process[row], ctx, gen, lists["offset"][row], lists["thread"][row], lists["line"][row],
                )  # fmt: skip
                known[process[row], ctx, gen] = member
                latest[process[row], ctx] = member
                made.append(member)
            _take(member, init.words["func"][lists["func"][row]], lists, row, event)
    return made


def _other(member: Member, lists: dict[str, list[int]], row: int, event: str) -> bool:
    """Whether the line speaks of another communicator at the same address: the first was destroyed, or differs."""
    if event in ("destroy", "abort", "revoke"):
        return False
    if member.destroyed:
        return True
    pairs = ((member.rank, lists["rank"][row], -1), (member.nranks, lists["nranks"][row], -1),
             (member.comm_id, lists["comm_id"][row], 0))  # fmt: skip
    return any(mine not in (none, theirs) and theirs != none for mine, theirs, none in pairs)


def _take(member: Member, func: str, lists: dict[str, list[int]], row: int, event: str) -> None:
    for name, none in (
        ("rank", -1), ("nranks", -1), ("cuda_dev", -1), ("nvml_dev", -1), ("bus_id", -1), ("comm_id", 0), ("parent", 0),
        ("split", -1), ("color", -1), ("nodes", -1), ("mnnvl", -1),
    ):  # fmt: skip
        if getattr(member, name) == none and lists[name][row] != none:
            setattr(member, name, lists[name][row])
    member.func = member.func or func
    if event == "start":
        member.started = True
        member.starts += lists["count"][row]
        member.ts = float(lists["ts"][row])
    elif event == "complete":
        member.completed = True
        member.completes += lists["count"][row]
        member.complete_at = lists["offset"][row]
    elif event in ("destroy", "abort", "revoke"):
        member.destroyed = True


def lane(member: Member) -> tuple[int, int, int]:
    """The GPU of a process, the same in all its communicators."""
    return member.process, member.cuda_dev, member.bus_id


def by_process(members: Sequence[Member]) -> dict[int, list[int]]:
    """Members of each process, in order of their lines."""
    made: dict[int, list[int]] = {}
    for i, member in enumerate(members):
        made.setdefault(member.process, []).append(i)
    return made
