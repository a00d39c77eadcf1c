"""Ranks that are gone, or do not answer: their connections closed, and all others report that and nothing else; and
JOB006 by NCCL's RAS, by its answers and by what the log says of peers that it gave up.

A process that gets SIGKILL or SIGSEGV prints nothing, and without the output of its launcher no line names it. The
kernel closes its connections, which its peers see at once; of one that is stopped or stuck nothing closes before a
watchdog ends the others. So a rank is gone where peers saw connections close before any of them lost its patience.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from topodiag.checks.interface import (
    JobCheck,
    hosts_in,
    hosts_with,
    hosts_word,
    processes_word,
    quoted,
    rank_word,
    ranks_in,
)
from topodiag.checks.job.hang.ras_ranks import DepartedRanks, Silent, Standing, Stragglers, Who
from topodiag.checks.shared.job.first_error import first_error, peer_of
from topodiag.checks.shared.job.logs import named_by
from topodiag.checks.shared.job.text import failed
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Coverage, Finding, Severity
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


BLIND = (
    "RAS shows launches alone: a hang in which all ranks launched the same, sends and receives, ranks that wait in"
    " ncclCommSplit, and the first use of an algorithm do not show in it"
)


def by_ras(check: JobCheck, job: Job) -> Iterator[Finding]:
    """What the answers of RAS say together."""
    if not job.ras:
        return
    standing = Standing(job)
    silent = standing.silent()
    if silent is not None:
        yield _silent(check, silent)
    left = list(standing.left())
    yield from (_left(check, member) for member in left)
    numbers = {who.rank for member in left for who in member.who}
    for late in standing.behind():
        if not numbers or not {who.rank for who in late.who} <= numbers:  # who left launched less
            yield _stragglers(check, late, standing)


def by_ras_in_init(check: JobCheck, job: Job) -> Iterator[Finding]:
    """JOB001 by answers that list no communicator: no init has ended. Who is missing stands in the logs alone."""
    standing = Standing(job)
    if not standing.no_communicator:
        return
    count = len(standing.status)
    yield check.finding(
        check.where(),
        "in init by ras",
        f"RAS lists no communicator in {plural(count, 'answer')}: init waits for ranks that did not come",
        severity=Severity.ERROR if count > 1 else Severity.WARNING,
        observed="No communicator data collected!",
        fix=check.steps("" if count > 1 else "ask again", "compare the processes"),
        evidence=standing.status[-2:],
    )


def _stragglers(check: JobCheck, late: Stragglers, standing: Standing) -> Finding:
    stays, operation = late.stays, late.collective or "operation"
    who = _ranks(late.who, late.communicator) if late.who else plural(late.count, "rank")
    others = plural(late.others, "other rank")
    own, theirs = (late.front, late.at) if late.ahead else (late.at, late.front)
    again = "" if stays else "ask again"
    if late.instead:
        message = f"{who} launched {late.instead} where {others} of {late.communicator} launched {operation}"
    elif late.ahead:
        message = f"{who} launched {operation} number {late.front} of {late.communicator}, and {others} did not"
    else:
        missed = late.at + 1
        message = f"{who} did not launch {operation} number {missed} of {late.communicator}, which {others} launched"
    return check.finding(
        check.where(hosts_in(late.who), ranks=ranks_in(late.who)),
        "behind by ras",
        message + ("" if stays else ", in the one answer there is"),
        severity=Severity.ERROR if stays else Severity.WARNING,
        observed=f"{own} on {who}, {theirs} on {others}"
        + (f", the same in {plural(len(standing.status), 'answer')}" if stays else "")
        + (f"; its peers are late in {plural(late.holds_up, 'other communicator')}" if late.holds_up else ""),
        fix=(*check.steps(again), *(_look(check, late.who) if late.who else check.steps("list all ranks"))),
        cost="the others wait in that collective" if stays else "the job may simply run",
        evidence=late.origins,
        confidence=Confidence.HIGH if stays else Confidence.LOW,
    )


def _left(check: JobCheck, member: DepartedRanks) -> Finding:
    who = _ranks(member.who, member.communicator)
    return check.finding(
        check.where(hosts_in(member.who), ranks=ranks_in(member.who)),
        "left by ras",
        f"{who} left {member.communicator} ({', then '.join(member.states)}), and {plural(member.others, 'other rank')}"
        f" {'goes' if member.others == 1 else 'go'} on with it",
        sure=member.stays,
        observed=f"state {', then '.join(member.states)}; RUNNING on {plural(member.others, 'rank')}",
        fix=check.steps("" if member.stays else "ask again", "why early", who=who),
        evidence=member.origins,
    )


def _silent(check: JobCheck, silent: Silent) -> Finding:
    hosts = hosts_in(silent.who)
    whole = silent.answering == 0
    reach, stays = "can it be reached" if whole else "", silent.stays
    places = "; ".join(who.place for who in silent.who[:8])
    who = _ranks(silent.who, "")
    if silent.both_ways:
        message = f"two sides of the job do not reach each other: each calls the other one dead ({hosts_word(hosts)})"
    elif whole:
        message = f"no process on {hosts_word(hosts)} answers: {who}"
    else:
        message = f"{who} on {hosts_word(hosts)} {'does' if len(silent.who) == 1 else 'do'} not answer: stopped or dead"
    count = plural(silent.answering or 0, "other process", "other processes")
    others = f"; {count} there answer" if silent.answering else ""
    return check.finding(
        check.where(hosts, ranks=ranks_in(silent.who)),
        "silent to ras",
        message,
        severity=Severity.ERROR if stays else Severity.WARNING,
        observed=f"{places}: {'given up by RAS after 60 s' if silent.dead else 'no data'}{others}",
        fix=check.steps("path between the sides")
        if silent.both_ways
        else (*check.steps("" if stays else "ask again"), *_look(check, silent.who), *check.steps(reach)),
        evidence=silent.origins,
        confidence=Confidence.HIGH if silent.dead or stays else Confidence.MEDIUM,
    )


def _look(check: JobCheck, who: Sequence[Who]) -> tuple[str, ...]:
    """What to run now: it reads and changes nothing."""
    first = next((member for member in who if member.process is not None), None)
    if first is None or first.process is None:
        return check.steps("look at that rank")
    return check.steps("look at the process", host=first.host, pid=first.process.pid)


def _ranks(who: Sequence[Who], communicator: str) -> str:
    """Ranks of the world; else those of the communicator; else processes."""
    known = ranks_in(who)
    if known and len(known) == len(who):
        return rank_word(known)
    local = sorted(member.local for member in who if member.local >= 0)
    if communicator and len(local) == len(who):
        return f"{rank_word(local)} of the communicator"
    pids = [member.process.pid for member in who if member.process is not None]
    return f"process {pids[0]}" if len(pids) == 1 else plural(len(who), "process", "processes")


def by_dead_peers(check: JobCheck, job: Job) -> Iterator[Finding]:
    """Processes that the others gave up while the job ran, by NCCL's own log (subsystem RAS). Not at the end of a job,
    where rank 0 saves a checkpoint and all others are gone: a communicator was torn down, or half of the processes and
    more are given up."""
    if job.ras or (job.world is not None and job.world.destroyed):
        return
    own = {line.details["own_address"]: line.process for line in named_by(job, "own_address", "ras")}
    lines = list(named_by(job, "dead_peer", "ras"))
    tellers = grouped((line.details["dead_peer"], line.process) for line in lines)
    dead = sorted({own[address] for address in tellers if own.get(address, -1) >= 0})
    telling = set().union(*tellers.values()).difference(dead)
    size = max(job.world_size, len(job.processes))
    if not telling or 2 * len(tellers) >= size:
        return
    who = [processes_word(job, dead)] if dead else []
    who += [f"the process at {address.partition('<')[0]}" for address in sorted(tellers.keys() - own.keys())]
    yield check.finding(
        check.where_of(job, dead),
        "dead peers",
        f"RAS of {plural(len(telling), 'process', 'processes')} gave up {', '.join(who[:4])}: it reached them no more"
        " while they ran",
        observed="`as DEAD` in the others' logs, after 60 s (times NCCL_RAS_TIMEOUT_FACTOR)",
        evidence=lines,
        coverage=Coverage(len(telling), size, "processes that say so"),
    )
