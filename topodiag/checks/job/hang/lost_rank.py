"""A rank that is gone without a line of its own: its connections closed, and all others report that and nothing else.

A process that gets SIGKILL or SIGSEGV prints nothing, and without the output of its launcher no line names it. The
kernel closes its connections, which its peers see at once; of one that is stopped or stuck nothing closes before a
watchdog ends the others. So a rank is gone where peers saw connections close before any of them lost its patience.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from topodiag.checks.interface import JobCheck, hosts_with, hosts_word, quoted, rank_word
from topodiag.checks.job.hang.ras_ranks import Standing
from topodiag.checks.shared.job.first_error import first_error, peer_of
from topodiag.checks.shared.job.text import failed
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Coverage, Finding
from topodiag.model.job import Event, Job
from topodiag.words.units import grouped, plural

MOST_SHARE = 0.25
"""Share of the ranks without a report above which their logs are only not here."""
_WAITS = frozenset({"watchdog", "timeout"})
"""Kinds of first errors that may follow from a rank that is gone: ranks far from it wait until their watchdogs."""
_NO_REPORTS = frozenset({"note", "ended", "launched", "stalled"})
"""Kinds of events that tell of no error that a rank met."""
_ENDINGS = frozenset({"killed", "died", "exit"})
"""How launchers tell of an end without its reason (died.VAGUE)."""


@dataclass(frozen=True, slots=True)
class LostRanks:
    """Ranks that closed their connections and report nothing; the events by which others saw it, and how many they are.
    `left`: their programs came to their end. `unanswered`: RAS has no answer of them. `report`: the line of a
    launcher on the end of the first of them, where there is one."""

    ranks: tuple[int, ...]
    closed: tuple[Event, ...]
    tellers: int
    coverage: Coverage
    left: bool = False
    unanswered: bool = False
    report: Event | None = None


def gone(job: Job) -> LostRanks | None:
    """None where an error stands for itself, where nothing closed, or where it does not show who is gone."""
    closed = tuple(event for event in job.events if event.kind == "peer closed" and "peer gone" in event.details)
    if not closed or not _gave_up(job) or _other_error(job):
        return None
    rank_of = _ranks_of_processes(job)
    seen_by = {rank_of.get((event.host, event.pid), event.rank) for event in closed}
    spoke = _reporters(job, rank_of)
    size = size_of(job, spoke)
    unanswered = _unanswered(job) - spoke
    if -1 in seen_by and not unanswered:
        return None  # who reports that may be the rank that nothing else is known of
    silent = sorted(unanswered or set(range(min(size, 1 << 16))) - spoke)
    if not silent or len(silent) > max(1, MOST_SHARE * size) or len(spoke) < len(silent):
        return None
    left = _ended_well(job).issuperset(silent)
    if not left and _may_have_left(job, silent, bool(unanswered)):
        return None
    coverage = Coverage(len(spoke), size, "ranks that report an error")
    last_event = next(iter(_ends_of(job, silent)), None)
    tellers = len(seen_by - {-1}) or len({(event.host, event.pid) for event in closed})
    return LostRanks(tuple(silent), closed, tellers, coverage, left, bool(unanswered), last_event)


def _other_error(job: Job) -> bool:
    """Whether an error stands for itself, but for timeouts of ranks that waited longer than those that lost a peer."""
    first = first_error(job)
    return first is not None and (first.kind not in _WAITS or not lost_a_peer(job))


def size_of(job: Job, spoke: Collection[int]) -> int:
    """How many ranks a job has at least, by what NCCL was told and by the ranks that print anything."""
    return max(job.world_size, 1 + max([*spoke, *job.by_rank, *(step.rank for step in job.steps)], default=-1))


def lost_a_peer(job: Job) -> set[int]:
    """Ranks that report closed connections and no timeout of their own: their watchdogs did not wait long enough for
    one, so that the connections closed while the others still worked."""
    rank_of = _ranks_of_processes(job)
    closed = (e for e in job.events if e.kind == "peer closed" and "peer gone" in e.details)
    timed_out = {event.rank for event in job.events if event.kind == "watchdog" and "op" in event.details}
    return {rank_of.get((event.host, event.pid), event.rank) for event in closed} - timed_out - {-1}


def _gave_up(job: Job) -> bool:
    """Whether a program reports an error: what NCCL alone says may be of ranks that end together, one a moment late."""
    kinds = {event.kind for event in job.events if event.level == "APP"}
    return failed(job) and not kinds.isdisjoint(("peer closed", "watchdog", "other"))


def _ends_of(job: Job, ranks: Sequence[int]) -> list[Event]:
    """The lines on the ends of these ranks, of launchers and of their own."""
    return [event for event in job.events if event.kind == "ended" and _rank_named(event) in ranks]


def _unanswered(job: Job) -> set[int]:
    """The ranks of which RAS has no answer."""
    asked = Standing(job).silent() if job.ras else None
    return {who.rank for who in asked.who if who.rank >= 0} if asked is not None else set()


def _may_have_left(job: Job, silent: Sequence[int], unanswered: bool) -> bool:
    """Whether one of the ranks had a word, others waited for it until their watchdogs, reports name others as the peers
    that closed, or some left and nothing says who did not."""
    if any(event.details.get("how") not in _ENDINGS for event in _ends_of(job, silent)):
        return True
    if unanswered:
        return False
    if first_error(job) is not None:
        return True
    named = {peer_of(job, event).split(" ")[0] for event in job.events if event.kind == "peer closed"}
    named &= set(job.hosts)
    if named and named.isdisjoint(hosts_with(job, silent)):
        return True
    torn_down = job.world is not None and job.world.destroyed > 0
    return torn_down or not _ended_well(job).isdisjoint(silent)


def lost_rank_findings(check: JobCheck, job: Job, lost: LostRanks) -> Finding:
    """JOB009: they died."""
    who, hosts = rank_word(lost.ranks), hosts_with(job, lost.ranks)
    its, it = ("its", "it") if len(lost.ranks) == 1 else ("their", "they")
    # Of a rank whose log is not here nobody knows whether it had a word.
    verb = "ended without a word" if job.files else f"{'is' if it == 'it' else 'are'} gone"
    own = "no error of its own" if it == "it" else "no errors of their own"
    silent = "no answer to RAS" if lost.unanswered else own
    words = f"; {quoted(lost.report.text)}" if lost.report is not None else ""
    certain = lost.unanswered or lost.report is not None or lost.tellers > 1
    return check.finding(
        check.where(hosts, ranks=lost.ranks),
        "lost rank",
        f"{who}{f' on {hosts_word(hosts)}' if hosts else ''} {verb}: the others saw {its} connections close",
        observed=f"{quoted(lost.closed[0].text)} on {plural(lost.tellers, 'rank')}, {silent} of {who}{words}",
        fix=check.steps("exit code", place=hosts_word(hosts) or "its node"),
        evidence=[lost.report, *lost.closed],
        coverage=lost.coverage,
        confidence=Confidence.MEDIUM if certain else Confidence.LOW,
    )


def by_leaving(check: JobCheck, job: Job) -> Iterator[Finding]:
    """JOB006: ranks whose programs came to their end while the others went on."""
    lost = gone(job)
    if lost is None or not lost.left:
        return
    who, hosts = rank_word(lost.ranks), hosts_with(job, lost.ranks)
    yield check.finding(
        check.where(hosts, ranks=lost.ranks),
        check.advice("left early", who=who),
        f"{who}{f' on {hosts_word(hosts)}' if hosts else ''} came to the end of"
        f" {'its program' if len(lost.ranks) == 1 else 'their programs'} while the others went on",
        observed=f"the end of a program, or of its communicator, on {who}; {quoted(lost.closed[0].text)} on"
        f" {plural(lost.tellers, 'other rank')}",
        evidence=[*(e for e in job.events if e.rank in lost.ranks and "ended well" in e.details), *lost.closed],
        coverage=lost.coverage,
    )


def _ranks_of_processes(job: Job) -> dict[tuple[str, int], int]:
    """The rank of each process that an event is of: by another event of it, by its number, which answers of RAS have
    with an address instead of the host, or by those answers."""
    by_pid = grouped((rank.pid, rank.rank) for rank in job.ranks)
    ranks = {(event.host, event.pid): event.rank for event in job.events if event.rank >= 0 and event.pid >= 0}
    for event in job.events:
        own = set(by_pid.get(event.pid, ()))
        if len(own) == 1:
            ranks.setdefault((event.host, event.pid), own.pop())
    standing = Standing(job)
    for comm in (comm for answer in standing.status for comm in answer.communicators):
        for member in comm.members:
            if member.process is not None and (world := standing.who(member, comm).rank) >= 0:
                ranks.setdefault(member.process.key, world)
    return ranks


def _reporters(job: Job, rank_of: Mapping[tuple[str, int], int]) -> set[int]:
    """The ranks that report what they met, but for those whose program came to its end."""
    events = (event for event in job.events if event.kind not in _NO_REPORTS)
    ranks = {event.rank if event.rank >= 0 else rank_of.get((event.host, event.pid), -1) for event in events}
    return ranks - {-1} - _ended_well(job)


def _ended_well(job: Job) -> set[int]:
    """Ranks of which torch says that their program came to its end, or NCCL that their communicator was torn down; what
    they print later is their teardown. Not those that are torn down after an error of their own."""
    ended = {event.rank for event in job.events if event.rank >= 0 and "ended well" in event.details}
    torn_down = set(job.world.torn_down) if job.world is not None else set()
    broken = {event.rank for event in job.events if event.kind in ("watchdog", "peer closed")}
    return (ended | torn_down) - broken


def _rank_named(event: Event) -> int:
    named = event.details.get("named_rank", event.label)
    return int(named) if named.isdecimal() and len(named) < 10 else -1
