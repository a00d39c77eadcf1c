"""Tables of a verdict: causes and what follows from them, jobs, what was ruled out, who is who, what happened when."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.api.tables.interface import Row, Table, columns, joined
from topodiag.model.result import Result
from topodiag.model.verdict import Cause, Quantity


def _causes(result: Result) -> tuple[Cause, ...]:
    return result.verdict.causes if result.verdict is not None else ()


def _value(quantity: Quantity | None) -> float | None:
    return None if quantity is None else quantity.value


def _cause_rows(result: Result) -> Iterator[Row]:
    for number, cause in enumerate(_causes(result)):
        f, price = cause.finding, cause.price
        yield (
            number, f.id, cause.status.value, f.message, joined(f.where.nodes), joined(f.where.gpus),
            joined(f.where.nics), joined(f.where.ranks), cause.mechanism, price.gbs_lost, price.share,
            price.step_share, price.communication_share, price.job_share, _value(price.predicted),
            _value(price.alone), _value(price.all_gone), _value(price.measured), price.agreement.value, price.says,
            list(f.fix), len(cause.consequences), len(cause.contradicted_by),
        )  # fmt: skip


def _consequence_rows(result: Result) -> Iterator[Row]:
    for number, cause in enumerate(_causes(result)):
        for each in cause.consequences:
            f = each.finding
            yield number, each.depth, f.id, str(f.severity), f.message, joined(f.where.nodes), each.why


def _states(result: Result) -> Iterator[Row]:
    for job in result.verdict.jobs if result.verdict is not None else ():
        yield job.name, job.state.value, job.headline, joined(job.causes)


def _ruled_out(result: Result) -> Iterator[Row]:
    for each in result.verdict.ruled_out if result.verdict is not None else ():
        place = each.evidence[0] if each.evidence else None
        yield each.what, each.by, place.source if place else None, place.line if place else None


def _next(result: Result) -> Iterator[Row]:
    for each in result.verdict.next_evidence if result.verdict is not None else ():
        yield each.what, each.where, each.command, each.why


def _hosts(result: Result) -> Iterator[Row]:
    for host in result.identity.hosts:
        yield host.name, joined(host.aliases), joined(host.sources, ", "), host.boot or None


def _moments(result: Result) -> Iterator[Row]:
    for each in result.timeline.moments:
        source, line = (each.origin.source, each.origin.line) if each.origin is not None else (None, None)
        rank = each.rank if each.rank >= 0 else None
        yield each.time, each.stamp, each.within_s, each.host, rank, each.what, each.count, source, line


def _clocks(result: Result) -> Iterator[Row]:
    for each in result.timeline.clocks:
        yield each.source, each.host, each.zone or None, each.skew_s, each.within_s, each.how


CAUSES = Table(
    "Causes of a diagnosis, in the order of what they cost.",
    columns("""
        cause whole: Number of the cause, from 0.
        id text: Check that found it.
        status text: established, likely or hypothesis.
        message text: The fault in one line.
        nodes text: Nodes, parted by blanks.
        gpus text: GPUs, as GPU3.
        nics text: NICs, as mlx5_0.
        ranks text: Ranks of the job.
        mechanism text: How it makes the job slow or fail.
        gbs_lost number GB/s: Bandwidth lost at the narrowest place.
        share number 0..1: Part of it that is lost.
        step_share number 0..1: Part of a training step that is lost.
        communication_share number 0..1: Part of the communication of a step, where how long it computes is not known.
        job_share number 0..1: Part of what the job could reach that this cause takes by itself.
        predicted number GB/s: What the job reaches with the cause in force.
        alone number GB/s: What it reaches with this cause gone and all others in force.
        all_gone number GB/s: What it reaches with every cause gone.
        measured number GB/s: What was measured.
        agreement text: agrees, part, exceeds, not_measured or not_predicted.
        says text: The comparison in a sentence.
        fix list: What to do, step by step.
        consequences whole: Number of findings that follow from it.
        contradictions whole: Number of lines that speak against it.
    """),
    _cause_rows,
)
CONSEQUENCES = Table(
    "What follows from each cause.",
    columns("""
        cause whole: Number of the cause in the table `causes`.
        depth whole: Steps below the cause; 1 is directly.
        id text: Check that found it.
        severity text: info, warning or error.
        message text: The finding in one line.
        nodes text: Nodes, parted by blanks.
        why text: How the cause leads to it.
    """),
    _consequence_rows,
)
STATES = Table(
    "How each job and each measured run is.",
    columns("""
        job text: Job or run.
        state text: healthy, at_risk, slow, hung, failed or unknown.
        headline text: Why, in one line.
        causes text: Numbers of its causes, parted by blanks.
    """),
    _states,
)
RULED_OUT = Table(
    "What it is not.",
    columns("""
        what text: The part.
        by text: What clears it.
        source text: File of the first line that clears it.
        line whole: Its line.
    """),
    _ruled_out,
)
NEXT_EVIDENCE = Table(
    "Observations that would settle what is open.",
    columns("""
        what text: What to observe.
        where text: On which host.
        command text: By which command.
        why text: What it settles.
    """),
    _next,
)
HOSTS = Table(
    "Machines by every name that a source gives them.",
    columns("""
        name text: What the case calls it.
        aliases text: Its other names, parted by blanks.
        sources text: Kinds of evidence that speak of it.
        boot text: When it booted, in UTC, by its capture.
    """),
    _hosts,
)
TIMELINE = Table(
    "What happened, in order.",
    columns("""
        time number s: Seconds since the epoch, on the axis of the case.
        stamp text: The time as the source wrote it.
        within_s number s: Uncertainty of the time.
        host text: Node.
        rank whole: Rank of the job.
        what text: The event.
        count whole: How many lines tell of it.
        source text: File.
        line whole: Line.
    """),
    _moments,
)
CLOCKS = Table(
    "The clocks of the sources.",
    columns("""
        source text: Source.
        host text: Node.
        zone text: Zone, as +02:00.
        skew_s number s: Seconds that it is ahead of the axis of the case.
        within_s number s: Uncertainty of that.
        how text: From which events it was estimated.
    """),
    _clocks,
)
