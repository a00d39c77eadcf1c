"""JOB006 by NCCL's RAS: who the others wait for, while the job hangs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.hang.ras_ranks import Behind, Lasting, Left, Silent, Standing, Who
from topodiag.checks.words import hosts_in, hosts_word, rank_word, ranks_in
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Job
from topodiag.model.provenance import Origin
from topodiag.words.fold import plural

BLIND = (
    "RAS shows launches alone: a hang in which all ranks launched the same, sends and receives, ranks that wait in"
    " ncclCommSplit, and the first use of an algorithm do not show in it"
)
ASK_AGAIN = "ask RAS again after some seconds: counts that move are of a job that runs"

WHO = "RAS lists less than half of the ranks: `ncclras -f json` names all of them (2.28.7 and later), or `topodiag ras`"
ASK_THERE = "the node or the path to it: can it be reached, and what does RAS answer there?"


def by_ras(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """What the answers of RAS say together."""
    if not job.ras:
        return
    standing = Standing(job)
    silent = standing.silent()
    if silent is not None:
        yield _silent(check, silent)
    left = list(standing.left())
    yield from (_left(check, each) for each in left)
    gone = {who.rank for each in left for who in each.who}
    for each in standing.behind():
        if not gone or not {who.rank for who in each.who} <= gone:  # who left launched less
            yield _behind(check, each, standing)


def by_ras_in_init(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """JOB001 by answers that list no communicator: no init has ended. Who is missing stands in the logs alone."""
    standing = Standing(job)
    if not standing.no_communicator:
        return
    count = len(standing.status)
    yield check.finding(
        Severity.ERROR if count > 1 else Severity.WARNING,
        f"RAS lists no communicator in {plural(count, 'answer')}: init waits for ranks that did not come",
        observed="No communicator data collected!",
        expected="the communicator of all ranks, once init is done",
        fix=(
            *([] if count > 1 else [ASK_AGAIN]),
            "compare the processes that run on each node with the ranks that were to start: RAS does not know those"
            " that never came; the log names them (NCCL_DEBUG=INFO, then topodiag logs)",
        ),
        cost=Cost(text="all ranks that came wait"),
        evidence=[answer.origin for answer in standing.status[-2:]],
        confidence=Confidence.MEDIUM,
    )


def _behind(check: JobCheck[Any], each: Behind, standing: Standing) -> Finding:
    stays = each.lasting is Lasting.STAYS
    operation = each.collective or "operation"
    who = _ranks(each.who, each.communicator) if each.who else plural(each.count, "rank")
    others = plural(each.others, "other rank")
    own, theirs = (each.front, each.at) if each.ahead else (each.at, each.front)
    if each.instead:
        message = f"{who} launched {each.instead} where {others} of {each.communicator} launched {operation}"
    elif each.ahead:
        message = f"{who} launched {operation} number {each.front} of {each.communicator}, and {others} did not"
    else:
        missed = each.at + 1
        message = f"{who} did not launch {operation} number {missed} of {each.communicator}, which {others} launched"
    return check.finding(
        Severity.ERROR if stays else Severity.WARNING,
        message + ("" if stays else ", in the one answer there is"),
        observed=f"{own} on {who}, {theirs} on {others}"
        + (f", the same in {plural(len(standing.status), 'answer')}" if stays else "")
        + (f"; its peers are late in {plural(each.holds_up, 'other communicator')}" if each.holds_up else ""),
        expected="the same number of launches on all members, or numbers that move from answer to answer",
        fix=(*([] if stays else [ASK_AGAIN]), *(_look(each.who) if each.who else [WHO])),
        nodes=_hosts(each.who),
        ranks=_known(each.who),
        cost=Cost(text="the others wait in that collective" if stays else "the job may simply run"),
        evidence=_origins(each.origins),
        confidence=Confidence.HIGH if stays else Confidence.LOW,
    )


def _left(check: JobCheck[Any], each: Left) -> Finding:
    stays = each.lasting is Lasting.STAYS
    who = _ranks(each.who, each.communicator)
    return check.finding(
        Severity.ERROR if stays else Severity.WARNING,
        f"{who} left {each.communicator} ({', then '.join(each.states)}), and {plural(each.others, 'other rank')}"
        f" {'goes' if each.others == 1 else 'go'} on with it",
        observed=f"state {', then '.join(each.states)}; RUNNING on {plural(each.others, 'rank')}",
        expected="all members finalize a communicator together, at the end",
        fix=(
            *([] if stays else [ASK_AGAIN]),
            f"find out why {who} ended early: its exit code and its last lines; fewer batches than the others, or an"
            " exception that was caught",
        ),
        nodes=_hosts(each.who),
        ranks=_known(each.who),
        cost=Cost(text="the next collective of the others never ends"),
        evidence=_origins(each.origins),
        confidence=Confidence.HIGH if stays else Confidence.MEDIUM,
    )


def _silent(check: JobCheck[Any], silent: Silent) -> Finding:
    hosts = _hosts(silent.who)
    whole = silent.answering == 0
    places = "; ".join(who.place for who in silent.who[:8])
    who = _ranks(silent.who, "")
    if silent.both_ways:
        message = f"two sides of the job do not reach each other: each calls the other one dead ({hosts_word(hosts)})"
    elif whole:
        message = f"no process on {hosts_word(hosts)} answers: {who}"
    else:
        message = f"{who} on {hosts_word(hosts)} {'does' if len(silent.who) == 1 else 'do'} not answer: stopped or dead"
    others = (
        f"; {plural(silent.answering, 'other process', 'other processes')} there answer" if silent.answering else ""
    )
    return check.finding(
        Severity.ERROR if silent.lasting is Lasting.STAYS else Severity.WARNING,
        message,
        observed=f"{places}: {'given up by RAS after 60 s' if silent.dead else 'no data'}{others}",
        expected="an answer from every process of the job",
        fix=(
            ("the path between the two sides: ask RAS on a node of each side, then links, routes and firewall",)
            if silent.both_ways
            else (
                *([] if silent.lasting is Lasting.STAYS else [ASK_AGAIN]),
                *_look(silent.who),
                *([ASK_THERE] if whole else []),
            )
        ),
        nodes=hosts,
        ranks=_known(silent.who),
        cost=Cost(text="all other ranks wait for it"),
        evidence=_origins(silent.origins),
        confidence=Confidence.HIGH if silent.dead or silent.lasting is Lasting.STAYS else Confidence.MEDIUM,
    )


def _look(who: Sequence[Who]) -> list[str]:
    """What to run now: it reads and changes nothing."""
    first = next((member for member in who if member.process is not None), None)
    if first is None or first.process is None:
        return ["py-spy dump --pid PID of that rank, nvidia-smi, dmesg -T | tail on its node: what does it do instead?"]
    pid = first.process.pid
    return [
        f"on {first.host}: `ps -o stat,etime,cmd -p {pid}`, `py-spy dump --pid {pid}`, `nvidia-smi`, `dmesg -T | tail`:"
        " what does it do instead?"
    ]


def _ranks(who: Sequence[Who], communicator: str) -> str:
    """Ranks of the world; else those of the communicator; else processes."""
    known = _known(who)
    if known and len(known) == len(who):
        return rank_word(known)
    local = sorted(member.local for member in who if member.local >= 0)
    if communicator and len(local) == len(who):
        return f"{rank_word(local)} (of its communicator)"
    pids = [member.process.pid for member in who if member.process is not None]
    return f"process {pids[0]}" if len(pids) == 1 else plural(len(who), "process", "processes")


def _known(who: Sequence[Who]) -> list[int]:
    return ranks_in(who)


def _hosts(who: Sequence[Who]) -> list[str]:
    return hosts_in(who)


def _origins(origins: Sequence[Origin]) -> list[Origin | None]:
    return [*origins[:16]]
