"""JOB006 by torch's flight recorder: how far the ranks of each process group came, which group all others wait for, and
ranks that left no dump while all that dumped wait in one collective."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from topodiag.checks.interface import JobCheck, hosts_with, rank_word
from topodiag.checks.shared.job.text import group_words
from topodiag.lazy import dataclass
from topodiag.model.finding import Coverage, Finding
from topodiag.model.job import Job
from topodiag.words.units import plural

Group = tuple[str, tuple[int, ...]]
"""Name and world ranks: groups of one kind may share a name, as those of one dimension of a mesh do."""


@dataclass(frozen=True, slots=True)
class Front:
    """How far the ranks of a process group came: the last sequence number of each that dumped, and the entries
    (rank, operation, state) of the highest one. `members` are its world ranks. `elsewhere` are late ranks that wait in
    another group, `follow` ranks of other groups that wait for some of this one."""

    group: str
    words: str
    last: Mapping[int, int]
    entries: tuple[tuple[int, str, str], ...]
    members: tuple[int, ...]
    elsewhere: frozenset[int] = frozenset()
    follow: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def waits(self) -> bool:
        """Whether some ranks are behind, and one of those in front has not completed."""
        return min(self.last.values()) < max(self.last.values()) and bool(self.waiting)

    @property
    def waiting(self) -> frozenset[int]:
        """Ranks that are in the last operation and have not completed it."""
        return frozenset(rank for rank, _, state in self.entries if state != "completed")

    @property
    def missing(self) -> list[int]:
        """Ranks that left no dump."""
        return sorted(set(self.members) - self.last.keys())

    @property
    def late(self) -> frozenset[int]:
        """Ranks that are furthest behind."""
        lowest = min(self.last.values())
        return frozenset(rank for rank, seq in self.last.items() if seq == lowest)


def roots_of(fronts: Sequence[Front]) -> list[Front]:
    """The groups with a rank that is late and waits nowhere else. A rank that is late because it waits in another group
    is innocent: who holds that group up explains both. Of groups that wait for the same ranks the one with most that
    wait. Where all wait for each other, all of them."""
    held = sorted((front for front in fronts if front.waits), key=lambda front: -len(front.waiting))
    roots: list[Front] = []
    for front in held:
        waits = frozenset[int]().union(*(other.waiting for other in held if other is not front))
        root = replace(front, elsewhere=front.late & waits)
        own = root.late - root.elsewhere
        if own and not any(own == front.late - front.elsewhere for front in roots):
            roots.append(root)
    shown = {(front.group, front.members) for front in roots}
    others = (front.waiting for front in held if (front.group, front.members) not in shown)
    follow = frozenset[int]().union(*others)
    return [replace(front, follow=follow - front.waiting) for front in roots] or held


def fronts_of(job: Job) -> Iterator[Front]:
    """How far the ranks of each process group came; none of one of which fewer than two dumped."""
    records = {record.rank: record for record in job.flight}
    for (group, members), by_rank in entries_of_flight(job).items():
        # A rank of the group that dumped, with nothing recorded for it, has entered no operation of the group.
        last = {
            rank: max((seq for seq, _, _ in by_rank.get(rank, ())), default=0) for rank in members if rank in records
        }
        if len(last) > 1:
            front = max(last.values())
            at_front = [(rank, op, state) for rank, ops in by_rank.items() for seq, op, state in ops if seq == front]
            yield Front(group, group_words(job, group), last, tuple(at_front), members)


def entries_of_flight(job: Job) -> dict[Group, dict[int, list[tuple[int, str, str]]]]:
    """What each rank recorded, by process group; without a list of its ranks, of those that recorded it."""
    rows: dict[Group, dict[int, list[tuple[int, str, str]]]] = defaultdict(lambda: defaultdict(list))
    listed = {name: ranks for record in job.flight for name, ranks in record.groups.items() if ranks}
    for record in job.flight:
        for group, seq, operation, state in record.entries:
            members = record.groups.get(group) or listed.get(group, ())
            rows[group, tuple(members)][record.rank].append((seq, operation, state))
    return {(name, members or tuple(sorted(by_rank))): by_rank for (name, members), by_rank in rows.items()}


TIMED_OUT = "timed out"
"""State of an operation that the watchdog took from its list before it was complete."""
MOST_SHARE = 0.25
"""Share of the group without a dump above which the files are only not here."""


def by_missing_dumps(check: JobCheck, job: Job, hung: bool) -> Iterator[Finding]:
    """Of several groups the largest is told."""
    held_up = [front for front in fronts_of(job) if _all_wait(front, hung)]
    if not held_up:
        return
    front = max(held_up, key=lambda front: front.size)
    missing, records = front.missing, {record.rank: record for record in job.flight}
    number, (_, operation, state) = max(front.last.values()), front.entries[0]
    count = plural(len(front.last), "rank")
    ended = [event for event in job.events if event.rank in missing and event.kind == "ended"]
    yield check.finding(
        check.where(hosts_with(job, missing), ranks=missing),
        check.advice("missing dumps", missing=rank_word(missing)),
        f"{rank_word(missing)} left no flight recorder dump, and all others of process group {front.words} wait in"
        f" {operation} number {number}",
        observed=f"{count} at number {number}, state {state}; no dump of {rank_word(missing)}",
        cost=f"{count} wait in that collective",
        evidence=[*ended, *(records[rank] for rank, *_ in front.entries[:2])],
        coverage=Coverage(len(front.last), front.size, "flight recorder dumps"),
    )


def _all_wait(front: Front, hung: bool) -> bool:
    """Whether all ranks of a process group that dumped wait in one collective, and few left no dump."""
    alike = len(set(front.last.values())) == len({operation for _, operation, _ in front.entries}) == 1
    certain = hung or any(state == TIMED_OUT for *_, state in front.entries)
    few = 0 < len(front.missing) <= max(1, MOST_SHARE * front.size)
    return alike and certain and few and front.waiting == front.last.keys()
