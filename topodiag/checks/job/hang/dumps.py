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

LastEntry = tuple[int, int, str, str]
"""Rank, sequence number, operation and state."""


def by_missing_dumps(check: JobCheck, job: Job, hung: bool) -> Iterator[Finding]:
    """Of several groups the largest is told."""
    waiting = _last_entries(job)
    records = {record.rank: record for record in job.flight}
    missing_of = {group: sorted(set(_members(job, group)) - records.keys()) for group in waiting}
    groups = [group for group, last in waiting.items() if _all_wait(job, hung, group, last, missing_of[group])]
    if not groups:
        return
    group = max(groups, key=lambda name: len(_members(job, name)))
    last, missing, words = waiting[group], missing_of[group], group_words(job, group)
    _, number, operation, state = last[0]
    ended = [event for event in job.events if event.rank in missing and event.kind == "ended"]
    yield check.finding(
        check.where(hosts_with(job, missing), ranks=missing),
        check.advice("missing dumps", missing=rank_word(missing)),
        f"{rank_word(missing)} left no flight recorder dump, and all others of process group {words} wait in"
        f" {operation} number {number}",
        observed=f"{plural(len(last), 'rank')} at number {number}, state {state}; no dump of {rank_word(missing)}",
        cost=f"{plural(len(last), 'rank')} wait in that collective",
        evidence=[*ended, *(records[rank] for rank, *_ in last[:2])],
        coverage=Coverage(len(last), len(_members(job, group)), "flight recorder dumps"),
    )


def _all_wait(job: Job, hung: bool, group: str, last: Sequence[LastEntry], missing: Sequence[int]) -> bool:
    """Whether all ranks of a process group that dumped wait in one collective, and few left no dump."""
    alike = len({(number, operation) for _, number, operation, _ in last}) == 1
    all_wait = alike and all(state != "completed" for *_, state in last) and last[0][1] > 0
    certain = hung or any(state == TIMED_OUT for *_, state in last)
    few = 0 < len(missing) <= max(1, MOST_SHARE * len(_members(job, group))) and len(last) >= 2
    return all_wait and certain and few


def _members(job: Job, group: str) -> tuple[int, ...]:
    return next((record.groups[group] for record in job.flight if record.groups.get(group)), ())


def _last_entries(job: Job) -> dict[str, list[LastEntry]]:
    """By name of the process group, the last entry of each rank that dumped and belongs to it; number 0 where it has
    none."""
    by_name: dict[str, dict[int, list[tuple[int, str, str]]]] = defaultdict(dict)
    for (name, _), by_rank in entries_of_flight(job).items():
        by_name[name].update(by_rank)
    rows: dict[str, list[LastEntry]] = defaultdict(list)
    for group, by_rank in by_name.items():
        for record in job.flight:
            own = by_rank.get(record.rank, ())
            if own or record.rank in record.groups.get(group, ()):
                rows[group].append((record.rank, *max(own, default=(0, "", ""))))
    return rows
