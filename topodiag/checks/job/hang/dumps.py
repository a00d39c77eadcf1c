"""JOB006 by what torch and other frameworks leave: how far the ranks of each process group came by the flight recorder,
ranks that left no dump while all that did wait in one collective, words, stacks, a split that some did not enter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from topodiag.checks.interface import JobCheck, hosts_with, look_at, quoted, rank_word, ranks_in
from topodiag.checks.shared.job.text import failed, group_words, place_of
from topodiag.lazy import dataclass
from topodiag.model.diagnostics import Stack
from topodiag.model.finding import Confidence, Coverage, Finding, Severity
from topodiag.model.job import Communicator, Event, Job, Message
from topodiag.words.own_data import patterns
from topodiag.words.units import few, grouped, in_s, plural

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
        last = {rank: max((row[0] for row in by_rank.get(rank, ())), default=0) for rank in members if rank in records}
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


_GIVES_NAME = "Comm name set to "


def by_openings(check: JobCheck, job: Job) -> Iterator[Finding]:
    entered = _entered(job)
    texts = (message.text.partition(_GIVES_NAME) for message in entered.values())
    named = [name.strip() for _, gives, name in texts if gives]
    parent = _parent(job, entered)
    if parent is None or not named:
        return
    late = sorted(int(rank) for rank in parent.ranks if int(rank) not in entered)
    hung = failed(job)
    name = max(sorted(set(named)), key=named.count)
    yield check.finding(
        check.where(hosts_with(job, late), ranks=late),
        check.advice("split not entered", nranks=parent.nranks, parent=parent.label),
        f"{rank_word(late)} did not enter the split of {parent.label} into {name}, in which the others wait",
        sure=hung,
        observed=f"{plural(len(entered), 'rank')} named the new communicator {name} and none began it;"
        f" nothing of it from {rank_word(late)}",
        fix=look_at(job, late),
        cost=f"{plural(len(entered), 'rank')} wait" if hung else "the log may have been cut here",
        evidence=[message.origin for _, message in sorted(entered.items())][:2],
        coverage=Coverage(len(entered), parent.nranks, "ranks that entered"),
    )


def _entered(job: Job) -> dict[int, Message]:
    """By world rank, the last thing that was said of a communicator that did not begin. Processes of several ranks are
    left out: which of their GPUs entered is not told."""
    by_process = grouped((rank.process, rank.rank) for rank in job.ranks)
    opening = {at: process.opening for at, process in enumerate(job.processes) if process.opening is not None}
    return {by_process[at][0]: message for at, message in opening.items() if len(by_process.get(at, ())) == 1}


def _parent(job: Job, entered: dict[int, Message]) -> Communicator | None:
    """The smallest communicator that holds all who entered, where most of its ranks entered and all left lines."""
    known = job.by_rank
    holders = [c for c in job.communicators if entered and entered.keys() <= _ranks_in(c) and not c.destroyed]
    parent = min(holders, key=lambda communicator: (communicator.nranks, communicator.index), default=None)
    if parent is None or parent.nranks == len(entered) or 2 * len(entered) <= parent.nranks:
        return None
    whole = _ranks_in(parent) <= known.keys() and len(_ranks_in(parent)) == parent.nranks
    return parent if whole and parent.completed.all() else None


def _ranks_in(communicator: Communicator) -> set[int]:
    ranks: Sequence[int] = communicator.ranks.tolist()
    return set(ranks)


MOST_NAMED = 8
_FRAMES = patterns("checks/job/hang/dumps", "frames")
_OF_LIBRARIES = ("distributed_c10d.py", "pynccl", "/nccl/", "horovod/", "deepspeed/comm/")
"""Files whose functions of those names are collectives: others may only be called so."""
_GPU = frozenset({"synchronize", "item", "cpu", "tolist", "wait_stream", "wait_event", "run_backward",
                  "_engine_run_backward", "backward"})  # fmt: skip
"""Functions in which the host waits for the GPU, which may itself be in a collective: no word on the rank."""
INNER = 12
"""Frames from the innermost in which it is looked for: below them stands the program's own loop."""


def by_stacks(check: JobCheck, job: Job, hung: bool) -> Iterator[Finding]:
    """What the stacks of several processes say together."""
    by_operation = grouped((collective_of(stack), stack) for stack in job.stacks)
    others = [(stack, stack.frames[:INNER]) for stack in by_operation.pop("", [])]
    waiting = list(chain(*by_operation.values()))
    away = [stack for stack, frames in others if any(_FRAMES["away"].search(frame.file) for frame in frames)]
    # Computing, when the dump was taken: with a hang that is no moment but a state.
    elsewhere = [stack for stack, frames in others if not any(frame.function in _GPU for frame in frames)]
    if waiting and (away or elsewhere):
        yield _elsewhere(check, away or elsewhere, waiting, hung, Confidence.MEDIUM if away else Confidence.LOW)


def collective_of(stack: Stack) -> str:
    """The collective that the thread is in, by its library's own function; "" where it is in none."""
    for frame in stack.frames[:INNER]:
        if _FRAMES["collective"].match(frame.function) and (
            frame.function.startswith("nccl") or any(part in frame.file for part in _OF_LIBRARIES)
        ):
            return frame.function
    return ""


def _elsewhere(
    check: JobCheck, others: Sequence[Stack], waiting: Sequence[Stack], hung: bool, confidence: Confidence
) -> Finding:
    first = others[0]
    who, wait, chain = _names(others), _names(waiting), " < ".join(frame.function for frame in first.frames[:4])
    return check.finding(
        check.where(ranks=ranks_in(others)),
        check.advice("stacks", who=who),
        f"{who} {'is' if len(others) == 1 else 'are'} in {_place(first)}, while {wait}"
        f" {'waits' if len(waiting) == 1 else 'wait'} in {collective_of(waiting[0])}",
        severity=Severity.ERROR if hung else Severity.WARNING if confidence is Confidence.MEDIUM else Severity.INFO,
        observed=f"{chain}; {plural(len(waiting), 'stack')} in {collective_of(waiting[0])}",
        evidence=(*others[:3], *waiting[:2]),
        confidence=confidence,
    )


def _names(stacks: Sequence[Stack]) -> str:
    if all(stack.rank >= 0 for stack in stacks):
        return rank_word(sorted({stack.rank for stack in stacks}))
    return few(list(dict.fromkeys(stack.who for stack in stacks)), MOST_NAMED)


def _place(stack: Stack) -> str:
    """The innermost frame that says what the thread does: of a library's lock the caller says more."""
    return str(next((frame for frame in stack.frames[:INNER] if "/" in frame.file), stack.frames[0]))


NO_NEWS = frozenset({"note", "other", "peer closed"})
"""Kinds of events that name no cause by themselves."""
MOST_RANKS = 4096


def by_words(check: JobCheck, job: Job) -> Iterator[Finding]:
    """JOB006 by lines that say which ranks are missing or differ: Horovod's stall check, Gloo's monitored barrier,
    torch's fingerprints of collectives (TORCH_DISTRIBUTED_DEBUG=DETAIL), and truncated messages."""
    stalled = [event for event in job.events if event.kind == "stalled" and "told" not in event.details]
    if stalled:
        yield _stalled(check, job, stalled)
    mismatched = [event for event in job.events if event.kind == "mismatch" and "one" in event.details]
    if mismatched:
        yield _differ(check, job, mismatched)
    events = [event for event in job.events if "told" in event.details]
    if events and not (stalled or mismatched or job.ras):
        yield _by_report(check, job, events)
    if not (stalled or mismatched or events):
        yield from _through(check, job)
    if not mismatched:
        yield from _truncated(check, job)


def _stalled(check: JobCheck, job: Job, events: Sequence[Event]) -> Finding:
    ranks = _ranks_of(events)
    operation = events[0].details.get("op", "")
    who = rank_word(ranks) if ranks else "some ranks"
    waited = events[0].details.get("waited_ms", "")
    return check.of_events(
        events,
        "stalled",
        f"{who} did not enter {operation or 'an operation'} that the others wait in",
        check.where(hosts_with(job, ranks), ranks=ranks),
        observed=f"{plural(len(events), 'report')} of ranks that are missing"
        + (f", after {in_s(int(waited) / 1000)}" if waited else ""),
        fix=check.steps("doing instead", who=who if ranks else "the ranks that the log names below"),
    )


def _names_cause(event: Event, after: int) -> bool:
    """Whether a line says how a rank ended: a launcher's word of the ranks that this ended, below it, is none."""
    if event.kind in NO_NEWS:
        return False
    follows = event.kind == "ended" and event.details.get("how") in ("context", "exit", "aborted", "stopped")
    return not (follows and place_of(event)[1] > after)


def _through(check: JobCheck, job: Job) -> Iterator[Finding]:
    """Ranks that call one more operation than another rank, which was through or is gone."""
    events = [event for event in job.events if event.kind == "peer closed" and "finished" in event.details]
    if events and not any(_names_cause(event, place_of(events[0])[1]) for event in job.events):
        ranks = ranks_in(events)
        who = rank_word(ranks) if ranks else "a rank"
        yield check.of_events(
            events,
            "another rank was through",
            f"{who} waited in an operation that another rank did not enter: that one was through, or ended",
            check.where(hosts_with(job, ranks), ranks=ranks),
        )


def _by_report(check: JobCheck, job: Job, events: Sequence[Event]) -> Finding:
    """By the word of a program or a person that topodiag does not know: that calls differ before who is missing, as
    ranks that called another operation are missed in this one."""
    differ = [event for event in events if event.kind == "mismatch"]
    first = (differ or events)[0]
    ranks = _ranks_of([event for event in events if event.kind == first.kind])
    who = rank_word(ranks) if ranks else "some ranks"
    return check.of_events(
        events,
        "behind by words",
        f"{who}: {'calls of ranks differ' if differ else 'not where the others wait'}, in the text's own words:"
        f" {quoted(first.text)}",
        check.where(hosts_with(job, ranks), ranks=ranks),
        observed=quoted(first.text, 300),
        fix=check.steps("compare the calls" if differ else "not where others wait", who=who),
    )


def _ranks_of(events: Sequence[Event]) -> list[int]:
    named = {int(word) for event in events for word in event.details.get("ranks", "").split(",") if word.isdecimal()}
    return sorted(named)[:MOST_RANKS]


def _differ(check: JobCheck, job: Job, events: Sequence[Event]) -> Finding:
    first = events[0]
    ranks = [int(word) for word in first.details["ranks"].split(",") if word.isdecimal()]
    one, other = first.details["one"], first.details.get("other", "")
    numbers = [first.details.get(f"{side}_seq", "") for side in ("one", "other")]
    at = f" at number {numbers[0]}" if numbers[0] and numbers[0] == numbers[1] else ""
    words = f"; sequence numbers {numbers[0]} and {numbers[1]}" if all(numbers) and numbers[0] != numbers[1] else ""
    return check.of_events(
        events,
        "different calls",
        f"{rank_word(sorted(ranks))} call different operations{at}: {one or 'one'} and {other or 'another'}{words}"
        if len(ranks) > 1
        else f"{rank_word(ranks)} calls {one or 'an operation'}, and other ranks call another one",
        check.where(hosts_with(job, ranks), ranks=sorted(ranks)),
        observed=f"{one} on rank {ranks[0]}; {other} on rank {ranks[1]}" if len(ranks) > 1 else one,
    )


def _truncated(check: JobCheck, job: Job) -> Iterator[Finding]:
    cut = [event for event in job.events if event.level == "WARN" and "truncated" in event.details]
    if cut:
        named = cut[0].details
        wanted = f"bytes came where {named.get('awaited', '')} were expected"
        sizes = f": {named['received']} {wanted}" if "received" in named else ""
        yield check.of_events(cut, "truncated message", f"ranks do not agree on an operation{sizes}")
