"""Which memberships are one communicator, which communicators are one job, and which of them is the world.

What a process says before a communicator begins: its name, and that it waits for the others of the parent.

NCCL prints `Comm config Comm name set to ..` when the application calls (src/init.cc, parseCommConfig, 2.27 and later),
and `Init START` when the communicator is being made (ncclCommInitRankFunc). One that is split from none gets there at
once. One that is split from another first gathers the colours of all ranks of its parent (commGetSplitInfo): a process
that printed the former and never the latter waits there for a rank that did not call.

Algorithm and protocol that ranks of one communicator took differently for one operation size.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np

from topodiag.evidence.nccl_log.rebuild.frame import Frame, Ints, in_pieces
from topodiag.evidence.nccl_log.rebuild.members import Member, Processes, by_process, lane
from topodiag.lazy import dataclass
from topodiag.model.job import ChoiceApart, Message
from topodiag.words.joined import Sets
from topodiag.words.units import grouped


@dataclass(slots=True)
class Comm:
    """A communicator: its members by index, and its parent by index (-1 none known)."""

    nranks: int
    members: list[int] = field(default_factory=list)
    parent: int = -1
    root: bool = True
    ordinal: int = 0
    world: dict[int, int] = field(default_factory=dict)
    """World rank by communicator rank."""


def find_comms(members: Sequence[Member], processes: Processes) -> list[Comm]:
    """Members are of one communicator when they have the same commId (2.16+), or the same parent, number and colour
    of the split (2.23+); before 2.16, the same size and place among their process's communicators."""
    for own in by_process(members).values():
        _key_process([members[i] for i in own])
    comms: list[Comm] = []
    by_key = grouped((member.key, i) for i, member in enumerate(members))
    for group in _of_one_launch(by_key.values(), members):
        for part in _by_host_and_gpu(members, group, processes):
            first = members[part[0]]
            ordinal = min(members[i].ordinal for i in part)
            comms.append(Comm(first.nranks, part, root=not first.parent, ordinal=ordinal))
    comm_of = {id(members[i]): number for number, comm in enumerate(comms) for i in comm.members}
    for comm in comms:
        votes = Counter(comm_of[id(above)] for i in comm.members if (above := members[i].above) is not None)
        if votes:
            comm.parent = votes.most_common(1)[0][0]
            comm.root = False
    return comms


def _key_process(own: Sequence[Member]) -> None:
    """Gives each of a process's members its place, its parent and its key."""
    at: dict[int, Member] = {}
    nameless: Counter[Hashable] = Counter()
    lost: dict[int, int] = {}
    seen: Counter[tuple[int, int, int]] = Counter()
    for member in own:
        member.ordinal = seen[lane(member)]
        seen[lane(member)] += 1
        member.above = above = at.get(member.parent) if member.parent else None
        if member.comm_id:
            member.key = ("id", member.comm_id, member.nranks)
        elif above is not None:
            number = member.split
            if number < 0:  # 2.23 prints no number of the split
                nameless[above.key, member.color, member.nranks] += 1
                number = -nameless[above.key, member.color, member.nranks]
            member.key = ("split", above.key, number, member.color, member.nranks)
        elif member.parent:
            place = lost.setdefault(member.parent, len(lost))
            member.key = ("lost parent", place, member.split, member.color, member.nranks)
        else:
            nameless[lane(member), member.nranks] += 1
            member.key = ("size", member.nranks, nameless[lane(member), member.nranks])
        at[member.ctx] = member


def _of_one_launch(groups: Iterable[list[int]], members: Sequence[Member]) -> list[list[int]]:
    """The groups, of which two are one where they share out all ranks of one size between them and nobody completed.
    Versions of NCCL print the one unique id of a launch as different commIds."""
    numbers: list[list[int]] = []
    open_at: dict[int, list[int]] = {}
    for group in groups:
        first = members[group[0]]
        ranks = {members[i].rank for i in group}
        whole = len(ranks) != len(group) or len(ranks) >= first.nranks or -1 in ranks
        if whole or not first.comm_id or any(members[i].parent or members[i].completed for i in group):
            numbers.append(group)
            continue
        other = open_at.pop(first.nranks, [])
        taken = {members[i].rank for i in other}
        if ranks.isdisjoint(taken) and len(ranks | taken) == first.nranks:
            other += group
        else:
            open_at[first.nranks] = group
            numbers.append(group)
    return numbers


def _by_host_and_gpu(members: Sequence[Member], group: Sequence[int], processes: Processes) -> list[list[int]]:
    """Members that hold the same rank cannot be of one communicator: take them apart in the order of hosts and GPUs.

    Tensor groups of equal size then stay within their hosts, and data groups follow the GPUs.
    """
    by_rank = grouped((members[i].rank, i) for i in group)
    most = max(len(same) for same in by_rank.values())
    if most == 1 or members[group[0]].comm_id:
        return [list(group)]

    def place(i: int) -> tuple[str, int, int, int]:
        member = members[i]
        return processes.host[member.process], member.bus_id, member.cuda_dev, member.process

    ordered = [sorted(same, key=place) for same in by_rank.values()]
    return [[same[at] for same in ordered if at < len(same)] for at in range(most)]


def find_jobs(comms: Sequence[Comm], members: Sequence[Member]) -> list[list[int]]:
    """Communicators of each job: those that share processes. The world comes first, parents before children."""
    sets = Sets[int]()
    first_of: dict[int, int] = {}
    for number, comm in enumerate(comms):
        for i in comm.members:
            sets.join(number, first_of.setdefault(members[i].process, number))
        if comm.parent >= 0:
            sets.join(number, comm.parent)
    rooted = {sets.root(number) for number, comm in enumerate(comms) if comm.root}
    lost = [number for number in range(len(comms)) if sets.root(number) not in rooted]
    for number in lost:  # groups whose common parent left no line: nothing says that they are several jobs
        sets.join(number, lost[0])
    jobs = grouped((sets.root(number), number) for number in range(len(comms)))
    return [_ordered(job, comms, members) for job in jobs.values()]


def _ordered(job: Sequence[int], comms: Sequence[Comm], members: Sequence[Member]) -> list[int]:
    def place(number: int) -> tuple[int, int, int]:
        comm = comms[number]
        return (not comm.root, -comm.nranks, comm.ordinal)

    world = min(job, key=lambda number: (*place(number), -len(comms[number].members), number))
    _number_world(job, world, comms, members)

    def depth(number: int) -> int:
        steps = 0
        while comms[number].parent >= 0 and steps < len(comms):
            number, steps = comms[number].parent, steps + 1
        return steps

    def rank(number: int) -> tuple[int, int, int, int, int, int]:
        comm = comms[number]
        color = members[comm.members[0]].color
        known = [rank for rank in comm.world.values() if rank >= 0]
        return (number != world, depth(number), comm.ordinal, color, min(known, default=1 << 40), number)

    return sorted(job, key=rank)


def _number_world(job: Sequence[int], world: int, comms: Sequence[Comm], members: Sequence[Member]) -> None:
    """World ranks of all members, by the process and GPU that they share with a member of the world."""
    if comms[world].root:
        lanes = [(lane(members[i]), members[i].rank) for i in comms[world].members]
    else:  # nobody printed the world: number what is there
        there = sorted({lane(members[i]) for number in job for i in comms[number].members})
        lanes = [(row, rank) for rank, row in enumerate(there)]
    by_lane, by_own = dict(lanes), grouped((row[0], rank) for row, rank in lanes)
    only = {process: ranks[0] for process, ranks in by_own.items() if len(set(ranks)) == 1}
    for number in job:
        for i in comms[number].members:
            member = members[i]
            comms[number].world[member.rank] = by_lane.get(lane(member), only.get(member.process, -1))


MOST_ROWS = 1 << 20
"""Rows of choices that are compared: beyond those every rank of a large job printed many sizes, and one that chose
otherwise would have hung it at the first."""
MOST_KEPT = 16


def choices_apart(
    frame: Frame, processes: Processes, member: Ints, comm_of: Ints, own: Sequence[int]
) -> tuple[ChoiceApart, ...]:
    """What the processes `own` of a job chose differently, each for the same communicator, collective and size.
    `member` is by row of choices, -1 where the log does not say which: where it says it of none, all are taken for
    one communicator's."""
    rows = frame["choice"]
    if not 0 < len(rows) <= MOST_ROWS:
        return ()
    process = processes.of(rows["thread"], rows["offset"])
    comm = comm_of[member]
    place = {number: at for at, number in enumerate(own)}
    words = [rows.words[name] for name in ("func", "algo", "proto")]
    kept = np.flatnonzero(np.isin(process, own))
    if (comm[kept] >= 0).any():
        kept = kept[comm[kept] >= 0]
    func, algo, proto, size = (rows[name] for name in ("func", "algo", "proto", "bytes"))
    taken: dict[tuple[int, int, int], dict[int, dict[tuple[int, ...], int]]] = defaultdict(lambda: defaultdict(dict))
    for row, number, of, amount, who, *choice in in_pieces(kept, comm, func, size, process, algo, proto):
        taken[number, of, amount][who].setdefault(tuple(choice), row)
    aparts = []
    for (_, of, amount), chosen_by in taken.items():
        # A rank that chose several ways for one size tells nothing of its peers.
        one_way = [(place[who], chosen) for who, chosen in chosen_by.items() if len(chosen) == 1]
        groups = grouped((way, (rank, row)) for rank, chosen in one_way for way, row in chosen.items())
        if len(groups) > 1:
            ranks = {
                f"{words[1][by]}/{words[2][over]}": tuple(rank for rank, _ in sorted(choosers))
                for (by, over), choosers in groups.items()
            }
            origins = tuple(frame.origin(rows, choosers[0][1]) for choosers in groups.values())
            aparts.append(ChoiceApart(words[0][of], amount, ranks, origins))
    return tuple(aparts[:MOST_KEPT])


NAMED = "Comm name set to "
NO_COLOUR = "no color"


class _Call(NamedTuple):
    """One line of a call that makes a communicator; several equal ones are known by the place of the first."""

    offset: int
    message: Message

    @property
    def name(self) -> str:
        return self.message.text.partition(NAMED)[2].strip()


def find_openings(
    frame: Frame, processes: Processes, members: Sequence[Member]
) -> tuple[Mapping[int, str], Mapping[int, Message]]:
    """The names of communicators by member; by process what it said last before a communicator that did not begin."""
    begun = grouped((member.process, (member.offset, i)) for i, member in enumerate(members) if member.started)
    names: dict[int, str] = {}
    messages: dict[int, Message] = {}
    for process, calls in _calls(frame, processes).items():
        own = sorted(begun.get(process, []))
        names |= _names([call for call in calls if call.name], own)
        last = calls[-1]
        named = sum(call.message.count for call in calls if call.name)
        after = last.message.count == 1 and own and last.offset > own[-1][0]
        if own and (after or named > len(own)):
            messages[process] = last.message
    return names, messages


def _calls(frame: Frame, processes: Processes) -> dict[int, list[_Call]]:
    """By process, in order of print."""
    rows = frame["text"]
    texts, kinds = rows.words["text"], rows.words["kind"]
    chosen = np.flatnonzero(rows.is_word("kind", "config", NO_COLOUR))
    chosen = chosen[np.argsort(rows["offset"][chosen], kind="stable")]
    owners = processes.of(rows["thread"][chosen], rows["offset"][chosen]).tolist()
    columns = (rows[name] for name in ("offset", "count", "kind", "text"))
    calls: dict[int, list[_Call]] = defaultdict(list)
    for owner, (row, at, count, kind, text) in zip(owners, in_pieces(chosen, *columns), strict=True):
        if owner >= 0 and (kinds[kind] == NO_COLOUR or NAMED in texts[text]):
            calls[owner].append(_Call(at, Message(kinds[kind], texts[text], frame.origin(rows, row), count)))
    return calls


def _names(calls: Sequence[_Call], begun: Sequence[tuple[int, int]]) -> dict[int, str]:
    """By member, the name that was given before it began; none where calls of several names wait, as in a group, whose
    communicators begin in any order."""
    names: dict[int, str] = {}
    waiting: list[str] = []
    before = -1
    for offset, member in begun:
        waiting += [call.name for call in calls if before < call.offset < offset]
        before = offset
        if len(set(waiting)) > 1:
            waiting = [""] * len(waiting)
        if waiting and waiting[-1]:
            names[member] = waiting[-1]
        waiting = waiting[:-1]
    return names
