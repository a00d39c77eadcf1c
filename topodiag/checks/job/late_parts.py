"""For JOB008: a rank that is late in a part of each step, by the parts that the ranks of a training print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.behind import hosts_with
from topodiag.checks.shared.words import rank_word
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Severity
from topodiag.model.job import Job
from topodiag.model.late_part import LatePart, late_parts
from topodiag.model.steps import PartOf
from topodiag.words.fold import few
from topodiag.words.units import percent, spell_s

NO_WIRE = "leave the links alone: the others only wait in the part that holds the communication"
_FIXES = {
    PartOf.DATA: "look at the data loader of {who}: its store, its path to it, its workers, the cores that it may use",
    PartOf.OPTIMIZER: "look at what {who} does after its backward pass: logging, a checkpoint, its optimizer's share",
}
_COMPUTES = (
    "look at the GPU and the host of {who}: clocks and throttling of the GPU (GPU004), other processes on it, cores"
    " that are busy, a longer batch or sequence than those of the others"
)


def late_in_parts(job: Job) -> tuple[LatePart, ...] | None:
    """The ranks that are late, the latest first; None where the log does not compare them."""
    return late_parts(job.steps)


def tell_parts(check: JobCheck[Any], job: Job, observed: Sequence[LatePart]) -> Iterator[Finding]:
    """The finding on ranks that are late, one for each part."""
    by_part: dict[str, list[LatePart]] = {}
    for each in observed:
        by_part.setdefault(each.part, []).append(each)
    for several in by_part.values():
        yield _finding(check, job, several)


def _finding(check: JobCheck[Any], job: Job, several: Sequence[LatePart]) -> Finding:
    worst = several[0]
    ranks = sorted(each.series.rank for each in several if each.series.rank >= 0)
    one = len(several) == 1
    who = rank_word(ranks) if len(ranks) == len(several) else few([each.who for each in several], 4)
    waits = " and ".join(worst.waits_in)
    share = min(worst.late_s / worst.step_s, 1.0)
    hosts = hosts_with(job, ranks) or list(dict.fromkeys(each.series.host for each in several if each.series.host))
    return check.finding(
        Severity.WARNING,
        f"{who} {'is' if one else 'are'} late in each step: {'its' if one else 'their'} {worst.part} takes"
        f" {'' if one else 'up to '}{spell_s(worst.own_s)}, that of the others {spell_s(worst.usual_s)}, and they wait"
        f" for {'it' if one else 'them'} in {waits}",
        observed=f"{worst.part} {spell_s(worst.own_s)} on {worst.who}, in {waits} {spell_s(worst.waited_s)} less than"
        f" the others, by the median of {worst.steps} steps of {spell_s(worst.step_s)}",
        expected="all ranks take the same time for each part of a step",
        fix=(_FIXES.get(worst.of, _COMPUTES).format(who=who), NO_WIRE),
        nodes=hosts,
        ranks=ranks,
        cost=Cost(share=share, text=f"the others wait {spell_s(worst.late_s)} of each step, {percent(share)}"),
        evidence=[each.step.origin for each in several],
        coverage=Coverage(worst.ranks, max(job.world_size, worst.ranks), "ranks that time the parts of their steps"),
        confidence=Confidence.MEDIUM,
    )
