"""Which membership each row belongs to.

Most rows say it by their context. Lines of connections carry no communicator: what the context gives is checked
against the ranks and device numbers that the line prints, and where they do not fit, the process's other communicators
are asked.

The communicator of a log in which no line names one: who took part, by the lines of rings, trees and connections. An
excerpt (a `grep`, eight lines of a forum) has rarely an Init line. What it prints is of one communicator as long as
each process and GPU is one rank and each rank is one of them; where that does not hold there are several, and nothing
says which line is of which.

What NCCL prints once in a while and what a job prints at all: versions, the library, subsystems.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.bench_devices import device_of
from topodiag.evidence.nccl_log.grammar.spoken import HOST, RANK, SIZE, STATED
from topodiag.evidence.nccl_log.rebuild.frame import Frame, Ints
from topodiag.evidence.nccl_log.rebuild.groups import Comm
from topodiag.evidence.nccl_log.rebuild.members import MOST_RANKS, Member, Processes, by_process
from topodiag.evidence.nccl_log.rebuild.process import version_of
from topodiag.evidence.nccl_log.tables.facts import Marks, Table, breaks, distinct, place_in
from topodiag.lazy import regex
from topodiag.model.job import Event, Process, Rank, Stated
from topodiag.words.own_data import own_data
from topodiag.words.units import grouped

BEFORE_START = ("network", "config", "assigned", "dmabuf")
"""Kinds of text that speak of the communicator whose Init START comes next."""

_SETUP = ("ring", "tree", "order", "channels", "print", "conn")
"""Tables that an Init prints: before 2.18 there is no START in front of them, only a COMPLETE behind."""


class Places:
    """Members by the place of a row."""

    def __init__(self, frame: Frame, processes: Processes, members: Sequence[Member]) -> None:
        self.frame, self.processes, self.members = frame, processes, members
        self.file = frame["threads"]["file"]
        devs, self.dev = np.unique(frame["threads"]["dev"], return_inverse=True)
        self.devs = len(devs)
        process, gen, offset, thread, end = (
            np.array([getattr(member, name) for member in members], np.int64)
            for name in ("process", "gen", "offset", "thread", "complete_at")
        )
        ctx = np.array([member.ctx for member in members], np.uint64)
        self.ctxs, self.gens = distinct(ctx), distinct(gen)
        pair = self._pair(process, ctx)
        self.pairs = Marks(pair, offset)
        order = np.arange(len(pair))[::-1]  # of members that are equal in all three, the last
        self.exact, last = np.unique(self._exactly(pair, gen)[order], return_index=True)
        self.exact_member = order[last]
        self.started = started = np.flatnonzero([member.started for member in members])
        self.ended = ended = np.flatnonzero([member.completed and not member.started for member in members])
        self.lanes = Marks(self._lane(process, thread), offset)
        self.starts = Marks(self._lane_of_file(process[started], thread[started]), offset[started])
        self.ends = Marks(thread[ended], end[ended])

    def _pair(self, process: Ints, ctx: npt.NDArray[Any]) -> Ints:
        """Number of process and context, -1 where no member has the context."""
        number = place_in(self.ctxs, ctx)
        return np.where((number >= 0) & (process >= 0), process * len(self.ctxs) + number, -1)

    def _exactly(self, pair: Ints, gen: npt.NDArray[Any]) -> Ints:
        pair, number = place_in(self.pairs.keys, pair), place_in(self.gens, gen)
        return np.where((number >= 0) & (pair >= 0), pair * len(self.gens) + number, -1)

    def _lane(self, process: Ints, thread: npt.NDArray[Any]) -> Ints:
        """Number of a process and the GPU that the thread's head names."""
        lane: Ints = process * self.devs + self.dev[thread]
        return lane

    def _lane_of_file(self, process: Ints, thread: npt.NDArray[Any]) -> Ints:
        lane = self._lane(process, thread) * (int(self.file.max(initial=0)) + 1) + self.file[thread]
        return np.where(process >= 0, lane, -1)

    def of(self, table: str) -> Ints:
        """Member of each row, -1 unknown."""
        rows = self.frame[table]
        return self._of_rows(table, rows, self.processes.of(rows["thread"], rows["offset"]))

    def _of_rows(self, table: str, rows: Table, process: Ints) -> Ints:
        thread, offset, ctx, gen = (rows[name] for name in ("thread", "offset", "ctx", "gen"))
        # A thread prints many rows of one context in a row, and they share the answer.
        starts = np.flatnonzero(breaks((thread, process, ctx, gen)))
        lengths = np.diff(starts, append=len(rows))
        pair = self._pair(process[starts], ctx[starts])
        exact = place_in(self.exact, self._exactly(pair, gen[starts]))
        members: Ints = np.repeat(_values_of(self.exact_member, exact), lengths)
        left = np.flatnonzero((members < 0) & (process >= 0))
        if left.size:
            pair, lane, at = np.repeat(pair, lengths)[left], self._lane(process[left], thread[left]), offset[left]
            for near in (self.pairs.last(pair, at), self.pairs.next(pair, at), self.lanes.last(lane, at)):
                members[left] = np.where(members[left] < 0, near, members[left])
        if table in _SETUP and self.ended.size:
            # A COMPLETE without a START says whose the rows before it in the same thread are.
            ending = _values_of(self.ended, self.ends.next(thread, offset))
            if table == "conn":
                ending[rows["conn"] == 1] = -1
            members = np.where(ending >= 0, ending, members)
        if table == "text":
            self._coming(rows, process, members)
        return members

    def _coming(self, text: Table, process: Ints, members: Ints) -> None:
        """Puts right the members of texts of those kinds that belong to the START which follows: in the thread, or in
        another one of the process on the same device (the caller prints the name, a thread of a group call the
        START)."""
        early = np.flatnonzero(text.is_word("kind", *BEFORE_START))
        thread, offset = text["thread"][early], text["offset"][early]
        lane = self._lane_of_file(process[early], thread)
        coming = _values_of(self.started, self.starts.next(lane, offset))
        ending = _values_of(self.ended, self.ends.next(thread, offset))
        coming = np.where(np.isin(lane, self.starts.keys), coming, ending)
        members[early] = np.where(coming >= 0, coming, members[early])

    def of_connections(self, rows: Table, process: Ints) -> Ints:
        """Members of these rows of `conn`, checked against what the lines print; `seat` comes first."""
        members = self._of_rows("conn", rows, process)
        received, mine = rows["direction"] == 2, _mine("conn", rows)
        other = np.where(received, rows["rank"], rows["peer"])
        other_dev = np.where(received, rows["dev"], rows["peer_dev"])
        fits = (members >= 0) & self._fits(members, mine, other, other_dev)
        for row in np.flatnonzero(~fits).tolist():
            key = (int(process[row]), int(mine[row]), int(other[row]), int(other_dev[row]))
            answers = self.answers.get(key)
            if answers is None:
                candidates = np.array(self.members_of.get(key[0], []), np.int64)
                answers = self.answers[key] = candidates[self._fits(candidates, *key[1:])].tolist()
            before = [i for i in answers if self.members[i].offset <= int(rows["offset"][row])]
            members[row] = (before or answers or [-1])[-1]
        return members

    def seat(self, comms: Sequence[Comm], comm_of: Ints) -> None:
        """Takes what connections are checked against: ranks and sizes (of the communicator) by member; NVML index and
        packed bus id by communicator and rank, those of each communicator from `base` on, and behind the last -1 for
        what is unknown; the members of each process."""
        self.comm_of, self.members_of = comm_of, by_process(self.members)
        self.answers: dict[tuple[int, int, int, int], list[int]] = {}
        self.ranks, self.sizes, nvml, bus, started = (
            np.array([getattr(member, name) for member in self.members], np.int64)
            for name in ("rank", "nranks", "nvml_dev", "bus_id", "started")
        )
        self.base = np.cumsum([0, *(max(comm.nranks, 0) for comm in comms)])
        # The number in brackets: NVML index from 2.18 (START lines), packed bus id before.
        self.devices, self.buses = (np.full(int(self.base[-1]) + 1, -1, np.int64) for _ in range(2))
        sizes = np.append(np.diff(self.base), 0)[comm_of[:-1]]
        seated = (self.ranks >= 0) & (self.ranks < sizes)
        places = self.base[comm_of[:-1][seated]] + self.ranks[seated]
        self.devices[places] = np.where(started[seated] == 1, nvml[seated], -1)
        self.buses[places] = bus[seated]  # RCCL prints the bus id in all versions

    def _fits(
        self, member: Ints, rank: Ints | int, other: npt.NDArray[Any] | int, other_dev: npt.NDArray[Any] | int
    ) -> npt.NDArray[np.bool_]:
        """Whether members have this rank, and their communicators the other rank on this device."""
        comm = self.comm_of[member]
        place = self.base[comm] + np.maximum(other, 0)
        known = np.where(place < self.base[comm + 1], place, len(self.devices) - 1)
        device, bus = self.devices[known], self.buses[known]
        unknown = (np.less(other, 0)) | (device < 0) | (np.less(other_dev, 0))
        same = unknown | (device == other_dev) | (bus == other_dev)
        fitting: npt.NDArray[np.bool_] = (self.ranks[member] == rank) & (other < self.sizes[member]) & same
        return fitting


def _values_of(values: Ints, place: Ints) -> Ints:
    """The values at these places, -1 where there is no place."""
    return np.append(values, -1)[place]


Lane = tuple[int, int]
"""Process, and the device that the head names."""

NO_GEN = -2
"""Of no row: members of this kind are never found by their context."""

MOST_ROWS = 1 << 20
"""Connections of a log in which no communicator is looked for: an excerpt is small."""

_OTHERS = {"ring": ("prev", "next"), "tree": ("up", "d0", "d1", "d2"), "conn": ("rank", "peer")}
"""Columns that name ranks beside the one that prints."""
_NAMING = ("ring", "tree", "order", "channels", "choice")
"""Tables, beside that of connections, in which ranks print what is of one communicator."""


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
        for rank in [rank for rank in ranks if rank >= 0] or [-1]:
            offset, thread, line = ranks[rank]
            members.append(Member(process, 0, NO_GEN, offset, thread, line, (), rank, size, cuda_dev=dev))
    return members


class InferredPlaces(Places):
    """Members by the rank that a row names, else by the process and the device of its head."""

    def __init__(self, frame: Frame, processes: Processes, members: Sequence[Member]) -> None:
        super().__init__(frame, processes, members)
        self.process, self.rank, thread = (
            np.array([getattr(member, name) for member in members], np.int64) for name in ("process", "rank", "thread")
        )
        self.lane = self._lane(self.process, thread)

    def _of_rows(self, table: str, rows: Table, process: Ints) -> Ints:
        asked = [(self.process, process), (self.lane, self._lane(process, rows["thread"]))]
        if table in _OTHERS:
            asked.append((self.rank, _mine(table, rows)))
        members = np.full(len(rows), -1, np.int64)
        for own, wanted in asked:  # what says more comes later
            keys, first = np.unique(own, return_index=True)
            place = place_in(keys, wanted)
            members = np.where((place >= 0) & (wanted >= 0), _values_of(first, place), members)
        return members

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
    tables = chain(((name, frame[name]) for name in _NAMING), (("conn", rows) for rows in frame.connections()))
    for table, rows in tables if frame.connection_rows <= MOST_ROWS else ():
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


def _one_communicator(lanes: _Lanes, processes: Processes) -> bool:
    """Whether each process and GPU is one rank, and each rank one of them. Where heads are gone, all are in one."""
    owner: dict[int, Lane] = {}
    for lane, ranks in lanes.items():
        known = [rank for rank in ranks if rank >= 0]
        of_several = len(known) > 1 and bool(processes.host[lane[0]])
        if of_several or any(owner.setdefault(rank, lane) != lane for rank in known):
            return False
    return bool(lanes)


def untold(inferred: bool) -> str:
    """Why the ranks of a job may not be those of its world."""
    if inferred:
        return "no line names a communicator: ranks are those that print, and there may be more"
    return "the communicator of all ranks is not in the logs: ranks are numbered by process"


_TABLES = own_data("evidence/nccl_log/rebuild/printed")
_OF_RCCL = regex("|".join(_TABLES["rccl"]["lines"]))
_ASKED = 64
"""Processes of a job that are asked: what one says of the library holds for all."""


def versions(frame: Frame, processes: Sequence[Process], *, first: bool) -> tuple[str, ...]:
    """NCCL's versions that the processes print; of the first job also those that stand in no process's lines."""
    known = {process.versions["nccl"] for process in processes if "nccl" in process.versions}
    if not known and first:
        rows = frame["text"]
        texts = rows.words["text"]
        codes = rows["text"][rows.is_word("kind", "version")]
        known = {version_of(texts[code]) for code in distinct(codes).tolist()} - {""}
    # One build that is named twice, with the CUDA that it is for and without: `2.21.5+cuda12.4`, torch's `2.21.5`.
    return tuple(sorted(version for version in known if not any(other.startswith(f"{version}+") for other in known)))


def stated(frame: Frame, files: frozenset[int] | None) -> Stated:
    """What lines without a head state of the job whose processes alone print to these files (None: to all files)."""
    rows = frame["text"]
    chosen = rows.is_word("kind", *STATED)
    if files is not None:
        chosen &= np.isin(frame["threads"]["file"][rows["thread"]], list(files))
    by_kind = grouped((rows.word("kind", row), rows.word("text", row)) for row in np.flatnonzero(chosen).tolist())
    sizes = set(by_kind.get(SIZE, ()))
    return Stated(
        size=int(*sizes) if len(sizes) == 1 else -1,
        ranks=_listed(by_kind.get(RANK, ())),
        hosts=tuple(sorted(set(by_kind.get(HOST, ())))),
        comm_sizes=printed_sizes(frame) if files is None else (),
    )


def printed_sizes(frame: Frame) -> tuple[int, ...]:
    """The sizes of communicators that operations print."""
    return tuple(size for size in distinct(frame["op"]["nranks"]).tolist() if size > 0)


def _listed(lines: Iterable[str]) -> tuple[Rank, ...]:
    """The ranks of one list of devices, the first where a text holds several."""
    ranks: dict[int, Rank] = {}
    for device in filter(None, map(device_of, lines)):
        ranks.setdefault(
            device.rank, Rank(device.rank, device.host, device.pid, cuda_dev=device.device, bus_id=device.bus_id)
        )
    return tuple(ranks[rank] for rank in sorted(ranks))


def library(frame: Frame, processes: Sequence[Process], events: Sequence[Event] = ()) -> str:
    """RCCL says its name in the line of its version, which has no head, and in lines that only RCCL prints."""
    asked = processes[:_ASKED]
    lines = {message.text for process in asked for message in process.messages}  # ranks print the same ones
    lines.update(f"{event.place} {event.text}" for event in events)
    if any(map(_OF_RCCL.search, lines)) or any("rccl" in process.versions or _is_of_rccl(process) for process in asked):
        return "RCCL"
    rows = frame["text"]
    lone = {rows.words["text"][code] for code in set(rows["text"][rows.is_word("kind", "version")].tolist())}
    if not lone:
        nics = {hca.name for process in asked for hca in process.hcas}
        return "RCCL" if any(name.startswith(_TABLES["rccl"]["nic"]) for name in nics) else "NCCL"
    return "RCCL" if all(text.lstrip().startswith("RCCL") for text in lone) else "NCCL"


def _is_of_rccl(process: Process) -> bool:
    """Whether a process printed a kind of line, a setting or a link that only RCCL has."""
    links = process.system.links if process.system is not None else ()
    return (
        any(message.kind == "rccl" for message in process.messages)
        or any(name.startswith(tuple(_TABLES["rccl"]["settings"])) for name in process.settings)
        or any(link.kind == "XGMI" for link in links)
    )


def subsystems(frame: Frame) -> frozenset[str]:
    """Seen anywhere in the evidence: a job's processes share their settings."""
    tables = {"init": "INIT", "ring": "GRAPH", "print": "GRAPH", "op": "COLL", "choice": "TUNING"}
    texts = {name for table, name in tables.items() if len(frame[table])}
    kinds = set(frame["text"].words["kind"])
    texts.update(name for name, own in _TABLES["subsystems"].items() if kinds.intersection(own))
    for via in frame.vias:
        texts.add("NET" if via.startswith(("NET", "COLLNET")) else "SHM" if "SHM" in via else "P2P")
    return frozenset(texts)
