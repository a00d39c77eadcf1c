"""Tables of a verdict: causes and what follows from them, jobs, what was ruled out, who is who, what happened when."""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap

from topodiag.api.tables.interface import Part, Table, columns, parts
from topodiag.model.result import Result
from topodiag.report.documents.from_model import Document


def _of_verdict(name: str, part: str) -> Callable[[Result], list[Document]]:
    """These parts of the verdict; none where there is no verdict."""
    return lambda result: parts(part, getattr(result.verdict, name, ()))


CAUSES = Table(
    "Causes of a diagnosis, in the order of what they cost.",
    columns("""
        cause whole = owner: Number of the cause, from 0.
        id text = check: Check that found it.
        status text: established, likely or hypothesis.
        message text: The fault in one line.
        nodes text = where.nodes: Nodes, parted by blanks.
        gpus text = where.gpus: GPUs, as GPU3.
        nics text = where.nics: NICs, as mlx5_0.
        ranks text = where.ranks: Ranks of the job.
        mechanism text: How it makes the job slow or fail.
        gbs_lost number GB/s = cost.gbs_lost: Bandwidth lost at the narrowest place.
        share number 0..1 = cost.share: Part of it that is lost.
        step_share number 0..1 = cost.step_share: Part of a training step that is lost.
        communication_share number 0..1 = cost.communication_share: Part of the communication of a step, where how\
 long it computes is not known.
        job_share number 0..1: Part of what the job could reach that this cause takes by itself.
        predicted number GB/s = predicted.value: What the job reaches with the cause in force.
        alone number GB/s = alone.value: What it reaches with this cause gone and all others in force.
        all_gone number GB/s = all_gone.value: What it reaches with every cause gone.
        measured number GB/s = measured.value: What was measured.
        agreement text: agrees, part, exceeds, not_measured or not_predicted.
        says text: The comparison in a sentence.
        fix list: What to do, step by step.
        consequences whole: Number of findings that follow from it.
        contradictions whole = contradicted_by: Number of lines that speak against it.
    """),
    lambda result: starmap(Part, enumerate(_of_verdict("causes", "diagnose.Cause")(result))),
)
CONSEQUENCES = Table(
    "What follows from each cause.",
    columns("""
        cause whole = owner: Number of the cause in the table `causes`.
        depth whole: Steps below the cause; 1 is directly.
        id text = finding.id: Check that found it.
        severity text = finding.severity: info, warning or error.
        message text = finding.message: The finding in one line.
        nodes text = finding.where.nodes: Nodes, parted by blanks.
        why text: How the cause leads to it.
    """),
    lambda result: (
        Part(number, each)
        for number, cause in enumerate(getattr(result.verdict, "causes", ()))
        for each in cause.consequences
    ),
)
STATES = Table(
    "How each job and each measured run is.",
    columns("""
        job text = name: Job or run.
        state text: healthy, at_risk, slow, hung, failed or unknown.
        headline text: Why, in one line.
        causes text: Numbers of its causes, parted by blanks.
    """),
    _of_verdict("jobs", "diagnose.JobState"),
)
RULED_OUT = Table(
    "What it is not.",
    columns("""
        what text: The part.
        by text: What clears it.
        source text = evidence.0.source: File of the first line that clears it.
        line whole = evidence.0.line: Its line.
    """),
    _of_verdict("ruled_out", "diagnose.RuledOut"),
)
NEXT_EVIDENCE = Table(
    "Observations that would settle what is open.",
    columns("""
        what text: What to observe.
        where text: On which host.
        command text: By which command.
        why text: What it settles.
    """),
    _of_verdict("next_evidence", "diagnose.NextEvidence"),
)
HOSTS = Table(
    "Machines by every name that a source gives them.",
    columns("""
        name text: What the case calls it.
        aliases text: Its other names, parted by blanks.
        sources names: Kinds of evidence that speak of it.
        boot text: When it booted, in UTC, by its capture.
    """),
    lambda result: parts("diagnose.Host", result.identity.hosts),
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
    lambda result: parts("diagnose.Moment", result.timeline.moments),
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
    lambda result: parts("diagnose.Clock", result.timeline.clocks),
)
