"""What the answers of RAS say together: who stays behind, who left, who does not answer. `lost_rank.py` tells it.

Counts are launches: a healthy fast job shows a mismatch in one answer, so that only counts that stay apart count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from topodiag.checks.shared.job.text import logged, world_of
from topodiag.lazy import dataclass
from topodiag.model.job import Job
from topodiag.model.provenance import Origin
from topodiag.model.ras import GONE, MONITOR, RUNNING, RasAnswer, RasCommunicator, RasEvent, RasMember, RasProcess
from topodiag.words.units import grouped

_LOST = frozenset({"PEER_DEAD", "PEER_TIMEOUT_DEAD", "PEER_UNRESPONSIVE"})


@dataclass(frozen=True, slots=True)
class Who:
    """One rank. `rank` is that of the world, -1 where nothing ties it; `local` that of its communicator, -1 unknown."""

    rank: int
    host: str
    process: RasProcess | None
    local: int = -1
    origin: Origin | None = None

    @property
    def place(self) -> str:
        known = self.process
        return f"process {known.pid} on {self.host}, GPU {known.gpus}" if known is not None else self.host


@dataclass(frozen=True, slots=True)
class Stragglers:
    """Members that launched fewer operations of one collective than the others. `stays`: it is so in several answers,
    unchanged. `at` and `front` count operations.
    `ahead`: those named are fewer and in front, which the rest is not known to follow. `instead` is the collective
    that they launched more often than the others. `who` is empty where RAS lists none of them; `count` is how many."""

    communicator: str
    collective: str
    who: tuple[Who, ...]
    at: int
    front: int
    others: int
    stays: bool
    ahead: bool = False
    instead: str = ""
    origins: tuple[Origin | None, ...] = ()
    count: int = 0
    holds_up: int = 0
    """Other communicators in which members of this one are late, as they wait here."""


@dataclass(frozen=True, slots=True)
class DepartedRanks:
    """Members that finalized, aborted or left a communicator which the others still use."""

    communicator: str
    who: tuple[Who, ...]
    states: tuple[str, ...]
    others: int
    stays: bool
    origins: tuple[Origin | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Silent:
    """Processes that do not answer. `dead`: RAS gave them up, after 60 s. `answering` are the other processes of their
    hosts that do answer, None where that is not known. `both_ways`: another answer calls the other side dead."""

    who: tuple[Who, ...]
    dead: bool
    stays: bool
    answering: int | None = None
    both_ways: bool = False
    origins: tuple[Origin | None, ...] = ()


class Standing:
    """The answers of one job, and the names of its ranks."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.status = tuple(answer for answer in job.ras if answer.form != MONITOR)
        self._by_pid = grouped((rank.pid, (rank.host, rank.rank)) for rank in job.ranks)
        self._addresses = {(p.host, p.pid): frozenset((*p.addresses, p.host)) for p in job.processes}
        self._own_world = _world_of(self.status)

    @property
    def no_communicator(self) -> bool:
        """Whether no answer lists a communicator: init has not ended anywhere. One that was cut lists nothing yet."""
        listed = any(answer.total or answer.processes for answer in self.status)
        return not listed and any(answer.whole for answer in self.status)

    def who(self, member: RasMember, communicator: RasCommunicator) -> Who:
        """The world rank and host of a member, as far as something ties it."""
        known = logged(self.job, communicator.hash)
        if known is not None and (rank := world_of(known, member.rank)) >= 0:
            own = self.job.by_rank.get(rank)
            return Who(rank, own.host if own is not None else _host(member), member.process, member.rank, member.origin)
        if member.process is not None:
            named = self.process(member.process)
            if named.rank >= 0:
                return Who(named.rank, named.host, member.process, member.rank, member.origin)
        world = member.rank if self._is_world(communicator) else -1
        return Who(world, _host(member), member.process, member.rank, member.origin)

    def process(self, process: RasProcess) -> Who:
        """The rank of a process, by its pid and address; processes with several ranks have the first."""
        pairs = self._by_pid.get(process.pid, [])
        if len(pairs) > 1:
            pairs = [pair for pair in pairs if process.host in self._addresses.get((pair[0], process.pid), ())]
        if pairs:
            host, rank = min(pairs, key=lambda pair: pair[1])
            return Who(rank, host, process)
        return Who(self._own_world.get(process.key, -1), process.host, process)

    def _is_world(self, comm: RasCommunicator) -> bool:
        """Whether it is that of all ranks, as far as sizes tell."""
        return comm.size > 0 and comm.size == self._largest

    @cached_property
    def _largest(self) -> int:
        """Ranks of the largest communicator that the log or an answer tells of."""
        return max([self.job.world_size, *(comm.size for answer in self.status for comm in answer.communicators)])

    def behind(self) -> Sequence[Stragglers]:
        """By communicator: who launched less than the others in the last answer, unless the counts move; without those
        that a rank behind in another communicator holds up."""
        late_ranks: list[Stragglers] = []
        for comm, before in self._last_of_each(_differs):
            collectives = [name for name, by_count in comm.counts.items() if len(by_count) > 1]
            same = [old for old in before if _of(old, collectives) == _of(comm, collectives)]
            if before and not same:
                continue  # the counts move: the job runs
            late_ranks += _merged([self._late(comm, name, bool(same)) for name in collectives])
        return _without_held_up(late_ranks)

    def _late(self, comm: RasCommunicator, collective: str, stays: bool) -> Stragglers:
        by_count = comm.counts[collective]
        front, low = max(by_count), min(by_count)
        ranks = sum(by_count.values())
        ahead = by_count[front] * 2 < ranks and sum(n for count, n in by_count.items() if count < front) > ranks // 2
        wanted = front if ahead else low
        members = [member for member in comm.members if member.counts.get(collective) == wanted]
        count = by_count[wanted]
        if len(members) != count:
            members = []  # text lists less than half of all, and without VERBOSE a quarter
        who = tuple(self.who(member, comm) for member in members)
        origins = tuple(member.origin for member in members) or (comm.origin,)
        others = ranks - count
        return Stragglers(self.label(comm), collective, who, low, front, others, stays, ahead, "", origins, count)

    def left(self) -> Iterator[DepartedRanks]:
        """By communicator: who leaves or has left while others run in it."""
        for comm, before in self._last_of_each(_parted):
            members = _lost_members(comm)
            running = sum(count for state, count in comm.states.items() if state not in GONE)
            if not members or not running or len(members) > running:
                continue  # most have left: the communicator is being taken down
            ranks = {member.rank for member in members}
            same = [old for old in before if {member.rank for member in _lost_members(old)} == ranks]
            yield DepartedRanks(
                self.label(comm),
                tuple(self.who(member, comm) for member in members),
                tuple(dict.fromkeys(member.state for old in (*same, comm) for member in _lost_members(old))),
                running,
                bool(same),
                tuple(member.origin for member in members),
            )

    def silent(self) -> Silent | None:
        """Processes that RAS gave up, and those that do not answer in the last answer."""
        dead, back = self._given_up()
        asked = {process.key: process for answer in self.status[-1:] for process in answer.silent}
        lost = {key: process for key, process in {**asked, **dead}.items() if key not in back}
        if not lost:
            return None
        given_up = bool(dead.keys() & lost.keys())
        seen = [answer for answer in self.status if lost.keys() & {p.key for p in (*answer.silent, *answer.dead)}]
        placed = tuple(self._with_rank(self.process(process)) for process in lost.values())
        where = [event.origin for event, process in self._events() if process.key in lost and event.origin]
        origins = (*(member.origin for member in placed), *(answer.origin for answer in seen[-1:]), *where[:1])
        return Silent(placed, given_up, given_up or len(seen) > 1, self._answering(lost), self._both_ways(), origins)

    def _given_up(self) -> tuple[dict[tuple[str, int], RasProcess], set[tuple[str, int]]]:
        """Processes that an answer or an event calls dead, and those that came back since."""
        dead = {process.key: process for answer in self.status for process in answer.dead}
        dead |= {process.key: process for event, process in self._events() if event.what in _LOST}
        return dead, {process.key for event, process in self._events() if event.what == "PEER_RECOVERED"}

    def _events(self) -> Iterator[tuple[RasEvent, RasProcess]]:
        for answer in self.job.ras:
            for event in answer.events:
                if event.process is not None:
                    yield event, event.process

    def _with_rank(self, who: Who) -> Who:
        """With the rank that lists of members give, where the process alone does not tell it."""
        if who.rank >= 0 or who.process is None:
            return who
        for answer in reversed(self.status):
            for comm in answer.communicators:
                missing = [member for member in comm.members if member.missing]
                own = [member for member in missing if member.process and member.process.key == who.process.key]
                unnamed = [member for member in missing if member.process is None]
                single = unnamed if len({*answer.silent, *answer.dead}) == len(missing) == 1 else []
                for member in (*own, *single):
                    known = self.who(member, comm)
                    if known.rank >= 0:
                        return Who(known.rank, known.host or who.host, who.process, member.rank, member.origin)
        return who

    def _answering(self, lost: Mapping[tuple[str, int], RasProcess]) -> int | None:
        hosts = {host for host, _ in lost}
        known = {
            member.process.key
            for answer in self.status
            for comm in answer.communicators
            for member in comm.members
            if member.process is not None and not member.missing
        }
        if known:
            return len({key for key in known if key[0] in hosts} - lost.keys())
        totals = [answer for answer in self.status if answer.processes and answer.nodes]
        return totals[-1].processes // totals[-1].nodes * len(hosts) - len(lost) if totals else None

    def _both_ways(self) -> bool:
        """Whether two answers miss the processes of different hosts: each side calls the other one dead."""
        sides = {frozenset(p.host for p in (*answer.silent, *answer.dead)) for answer in self.status}
        several = [side for side in sides if side]
        return any(a.isdisjoint(b) for at, a in enumerate(several) for b in several[at + 1 :])

    def label(self, comm: RasCommunicator) -> str:
        known = logged(self.job, comm.hash)
        if known is not None:
            return known.label
        if comm.size > 1 and self._is_world(comm):
            return f"the communicator of all {comm.size} ranks"
        size = f" of {comm.size} ranks" if comm.size else ""
        return f"communicator {comm.hash:#x}{size}"

    def _last_of_each(
        self, wanted: Callable[[RasCommunicator], bool]
    ) -> Iterator[tuple[RasCommunicator, list[RasCommunicator]]]:
        """Each communicator that is so in the last answer, and as it was so in those before. Text lists what is not in
        order alone."""
        if not self.status:
            return
        for comm in self.status[-1].communicators:
            if wanted(comm):
                earlier = [old for answer in self.status[:-1] for old in answer.communicators]
                yield comm, [old for old in earlier if old.hash == comm.hash and wanted(old)]


def _merged(late_ranks: Sequence[Stragglers]) -> Iterator[Stragglers]:
    """One for each group of ranks: who launched less of one collective and more of another one diverged."""
    for several in grouped(
        (tuple(sorted(late.who, key=lambda who: (who.rank, who.local))), late) for late in late_ranks
    ).values():
        late = [late for late in several if not late.ahead] or several
        more = [other.collective for other in several if other.ahead and other is not late[0]]
        first = late[0]
        yield replace(first, instead=more[0] if more and first.who else "")


def _without_held_up(late_ranks: Sequence[Stragglers]) -> list[Stragglers]:
    """Without those that are late because they wait elsewhere. One rank that all others of its communicator wait for
    holds them up in their other groups too. Where nothing lists those others (text lists who is not in order alone), as
    many late processes on its host as the communicator has ranks are them."""
    for root in late_ranks:
        if len(root.who) != 1 or root.others < len(root.who) + 1 or root.ahead or root.instead:
            continue
        near = {key for late in late_ranks for key in _keys(late) if key[0] == root.who[0].host}
        held = [late for late in late_ranks if late is not root and late.who and not late.ahead]
        if len(near) == root.others + 1 and all(_keys(late) <= near for late in held):
            return [replace(root, holds_up=len(held)), *(late for late in late_ranks if late not in (root, *held))]
    return list(late_ranks)


def _keys(late: Stragglers) -> set[tuple[str, int]]:
    """Hosts and numbers of the processes that are late; -1 for one that RAS does not name."""
    return {who.process.key if who.process is not None else (who.host, -1) for who in late.who}


def _differs(comm: RasCommunicator) -> bool:
    return any(len(by_count) > 1 for by_count in comm.counts.values())


def _parted(comm: RasCommunicator) -> bool:
    return len(comm.states) > 1 and RUNNING in comm.states


def _lost_members(comm: RasCommunicator) -> list[RasMember]:
    return [member for member in comm.members if member.state in GONE]


def _of(comm: RasCommunicator, collectives: Sequence[str]) -> dict[str, Mapping[int, int] | None]:
    return {name: comm.counts.get(name) for name in collectives}


def _host(member: RasMember) -> str:
    return member.process.host if member.process is not None else ""


def _world_of(answers: Sequence[RasAnswer]) -> Mapping[tuple[str, int], int]:
    """World ranks by process, where the largest communicator is one alone and lists its members."""
    worlds: dict[tuple[str, int], int] = {}
    for answer in answers:
        sizes = sorted((comm.size for comm in answer.communicators), reverse=True)
        if answer.form != "json" or not sizes or sizes[1:2] == sizes[:1]:
            continue
        for member in max(answer.communicators, key=lambda comm: comm.size).members:
            if member.process is not None:
                worlds.setdefault(member.process.key, member.rank)
    return worlds
