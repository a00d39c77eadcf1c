"""JOB006 by NCCL's RAS: who the others wait for, by its answers and by what the log says of peers that it gave up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import JobCheck, hosts_in, hosts_word, processes_word, rank_word, ranks_in
from topodiag.checks.job.hang.ras_ranks import DepartedRanks, Silent, Standing, Stragglers, Who
from topodiag.checks.shared.job.logs import named_by
from topodiag.model.finding import Confidence, Coverage, Finding, Severity
from topodiag.model.job import Job
from topodiag.words.units import grouped, plural

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
