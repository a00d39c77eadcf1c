"""Which membership each row belongs to.

Most rows say it by their context. Lines of connections carry no communicator: what the context gives is checked
against the ranks and device numbers that the line prints, and where they do not fit, the process's other communicators
are asked.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from topodiag.evidence.nccl_log.rebuild_frame import Frame, Ints, Rows
from topodiag.evidence.nccl_log.rebuild_groups import Comm
from topodiag.evidence.nccl_log.rebuild_members import Member, Processes, by_process

BEFORE_START = ("network", "config", "assigned", "dmabuf")
"""Kinds of text that speak of the communicator whose Init START comes next."""

_SETUP = ("ring", "tree", "order", "channels", "print", "conn")
"""Tables that an Init prints: before 2.18 there is no START in front of them, only a COMPLETE behind."""


@dataclass(slots=True)
class Seating:
    """What connections are checked against: `ranks` and `sizes` (of the communicator) by member, `devices` by
    communicator and rank, the same below each other as `flat` from `base`; `members_of` a process."""

    comm_of: Ints
    ranks: Ints
    sizes: Ints
    base: Ints
    devices: list[Ints]
    flat: Ints
    members_of: dict[int, list[int]]
    answers: dict[tuple[int, int, int, int], list[int]] = field(default_factory=dict)


class Places:
    """Members by the place of a row."""

    def __init__(self, frame: Frame, processes: Processes, members: Sequence[Member]) -> None:
        self.frame, self.processes, self.members = frame, processes, members
        self.exact: dict[tuple[int, int, int], int] = {}
        self.latest: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
        ends: dict[int, list[tuple[int, int]]] = {}
        starts: dict[int, list[tuple[int, int]]] = {}
        devs = frame["threads"]["dev"].tolist()
        for i, member in enumerate(members):
            self.exact[member.process, member.ctx, member.gen] = i
            offsets, which = self.latest.setdefault((member.process, member.ctx), ([], []))
            offsets.append(member.offset)
            which.append(i)
            lanes.setdefault((member.process, devs[member.thread]), []).append((member.offset, i))
            if member.started:
                starts.setdefault(member.thread, []).append((member.offset, i))
            elif member.completed:
                ends.setdefault(member.thread, []).append((member.complete_at, i))
        self.lanes = {key: sorted(value) for key, value in lanes.items()}
        self.ends = {key: sorted(value) for key, value in ends.items()}
        self.starts = {key: sorted(value) for key, value in starts.items()}

    def of(self, table: str) -> Ints:
        """Member of each row, -1 unknown."""
        rows = self.frame[table]
        return self._of_rows(table, rows, self.processes.of(self.frame, rows.read("thread"), rows.read("offset")))

    def _of_rows(self, table: str, rows: Rows, process: Ints) -> Ints:
        made = np.full(rows.size, -1, np.int64)
        if not rows.size:
            return made
        devs = self.frame["threads"]["dev"]
        thread, offset, ctx_of, gen_of = (rows.read(name) for name in ("thread", "offset", "ctx", "gen"))
        # A thread prints many rows of one context in a row, and they share the answer.
        new = np.ones(rows.size, bool)
        new[1:] = False
        for column in (thread, process, ctx_of, gen_of):
            new[1:] |= column[1:] != column[:-1]
        starts = np.flatnonzero(new)
        bounds = [*starts.tolist(), rows.size]
        lists = (column[starts].tolist() for column in (process, ctx_of, gen_of, devs[thread]))
        for number, (owner, ctx, gen, dev) in enumerate(zip(*lists, strict=True)):
            if owner < 0:
                continue
            first, end = bounds[number], bounds[number + 1]
            known = self.exact.get((owner, ctx, gen))
            latest = self.latest.get((owner, ctx))
            if known is None and latest is not None and len(latest[1]) == 1:
                known = latest[1][0]
            if known is not None:
                made[first:end] = known
                continue
            for i in range(first, end):
                found = _last(*latest, int(offset[i])) if ctx and latest is not None else None
                if found is None:
                    found = self._by_lane(owner, dev, int(offset[i]))
                made[i] = -1 if found is None else found
        if table in _SETUP and self.ends:
            self._before_complete(table, rows, made)
        return made

    def _by_lane(self, process: int, dev: int, offset: int) -> int | None:
        pairs = self.lanes.get((process, dev))
        if not pairs:
            return None
        place = bisect.bisect_right(pairs, (offset, len(self.members))) - 1
        return pairs[place][1] if place >= 0 else None

    def _before_complete(self, table: str, rows: Rows, made: Ints) -> None:
        """Rows that a COMPLETE without a START follows in the same thread."""
        for i, (thread, offset) in enumerate(rows.lists("thread", "offset")):
            pairs = self.ends.get(thread)
            if pairs is None or (table == "conn" and rows["conn"][i] == 1):
                continue
            place = bisect.bisect_left(pairs, (offset, -1))
            if place < len(pairs):
                made[i] = pairs[place][1]

    def of_text(self) -> Ints:
        """The same for texts, where some kinds belong to the START that follows: in the thread, or in another one of
        the process on the same device (the caller prints the name, a thread of a group call the START)."""
        text, threads = self.frame["text"], self.frame["threads"]
        made = self.of("text")
        files, devs = threads["file"].tolist(), threads["dev"].tolist()
        by_lane: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
        for thread, pairs in self.starts.items():
            for offset, i in pairs:
                lane = (self.members[i].process, files[thread], devs[thread])
                by_lane.setdefault(lane, []).append((offset, i))
        for pairs in by_lane.values():
            pairs.sort()
        process = self.processes.of(self.frame, text["thread"], text["offset"]).tolist()
        for row in np.flatnonzero(text.is_word("kind", *BEFORE_START)).tolist():
            thread, offset = int(text["thread"][row]), int(text["offset"][row])
            pairs = by_lane.get((process[row], files[thread], devs[thread])) or self.ends.get(thread, [])
            place = bisect.bisect_left(pairs, (offset, -1))
            if place < len(pairs):
                made[row] = pairs[place][1]
        return made

    def of_connections(self, rows: Rows, process: Ints, seating: Seating) -> Ints:
        """Members of these rows of `conn`, checked against what the lines print."""
        made = self._of_rows("conn", rows, process)
        received = rows["direction"] == 2
        mine = np.where(received, rows["peer"], rows["rank"])
        other = np.where(received, rows["rank"], rows["peer"])
        other_dev = np.where(received, rows["dev"], rows["peer_dev"])
        comm_of, flat = seating.comm_of, seating.flat
        fits = (made >= 0) & (seating.ranks[made] == mine) & (other < seating.sizes[made])
        index = np.where(fits & (other >= 0), seating.base[comm_of[made]] + np.maximum(other, 0), 0) if flat.size else 0
        known = flat[index] if flat.size else np.full(rows.size, -1, np.int64)
        fits &= (other < 0) | (known < 0) | (other_dev < 0) | (known == other_dev)
        for row in np.flatnonzero(~fits).tolist():
            key = (int(process[row]), int(mine[row]), int(other[row]), int(other_dev[row]))
            answers = seating.answers.get(key)
            if answers is None:
                candidates = seating.members_of.get(key[0], [])
                answers = [i for i in candidates if self._fits(i, key, seating.devices[int(comm_of[i])])]
                seating.answers[key] = answers
            before = [i for i in answers if self.members[i].offset <= int(rows["offset"][row])]
            made[row] = (before or answers or [-1])[-1]
        return made

    def seating(self, comms: Sequence[Comm], comm_of: Ints) -> Seating:
        devices = [self._devices(comm) for comm in comms]
        return Seating(
            comm_of=comm_of,
            ranks=np.array([member.rank for member in self.members] or [-1], np.int64),
            sizes=np.array([member.nranks for member in self.members] or [-1], np.int64),
            base=np.cumsum([0, *(comm.nranks for comm in comms)]),
            devices=devices,
            flat=np.concatenate(devices) if devices else np.zeros(0, np.int64),
            members_of=by_process(self.members),
        )

    def _fits(self, i: int, key: tuple[int, int, int, int], devices: Ints) -> bool:
        _, mine, other, other_dev = key
        member = self.members[i]
        if member.rank != mine or other >= member.nranks:
            return False
        return other < 0 or other_dev < 0 or other >= len(devices) or devices[other] in (-1, other_dev)

    def _devices(self, comm: Comm) -> Ints:
        """Number in brackets by communicator rank: NVML index from 2.18 (START lines), packed bus id before."""
        made = np.full(comm.nranks if comm.nranks > 0 else 0, -1, np.int64)
        for i in comm.members:
            member = self.members[i]
            if 0 <= member.rank < len(made):
                made[member.rank] = member.nvml_dev if member.started else -1
        return made


def _last(offsets: list[int], which: list[int], offset: int) -> int:
    return which[max(bisect.bisect_right(offsets, offset) - 1, 0)]
