"""For JOB008: a rank that is late in a part of each step, by the parts that the ranks of a training print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.behind import hosts_with
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Severity
from topodiag.model.job import Job
from topodiag.model.late_part import LatePart, late_parts
from topodiag.model.steps import PartOf
from topodiag.words.units import percent, spell_s

_MOST_NAMED = 4
NO_WIRE = "leave the wires alone: the others only wait for this rank in the part that holds the communication"
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
    found = late_parts(job.steps)
    return None if found is None else found[:_MOST_NAMED]


def tell_parts(check: JobCheck[Any], job: Job, observed: Sequence[LatePart]) -> Iterator[Finding]:
    """The finding on ranks that are late."""
    for each in observed:
        rank = each.series.rank
        ranks = [rank] if rank >= 0 else []
        waits = " and ".join(each.waits_in)
        share = min(each.late_s / each.step_s, 1.0)
        yield check.finding(
            Severity.WARNING,
            f"{each.who} is late in each step: its {each.part} takes {spell_s(each.own_s)}, that of the others"
            f" {spell_s(each.usual_s)}, and they wait for it in {waits}",
            observed=f"{each.part} {spell_s(each.own_s)} on {each.who}, in {waits} {spell_s(each.waited_s)} less than"
            f" the others, by the median of {each.steps} steps of {spell_s(each.step_s)}",
            expected="all ranks take the same time for each part of a step",
            fix=(_FIXES.get(each.of, _COMPUTES).format(who=each.who), NO_WIRE),
            nodes=hosts_with(job, ranks) or ([each.series.host] if each.series.host else []),
            ranks=ranks,
            cost=Cost(share=share, text=f"the others wait {spell_s(each.late_s)} of each step, {percent(share)}"),
            evidence=[each.step.origin],
            coverage=Coverage(each.ranks, max(job.world_size, each.ranks), "ranks that time the parts of their steps"),
            confidence=Confidence.MEDIUM,
        )
