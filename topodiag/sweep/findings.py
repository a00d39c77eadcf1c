"""The faults of a sweep as findings, as `bench read` counts and prints them."""

from __future__ import annotations

from topodiag.model.finding import Confidence, Cost, Finding, Severity, Where
from topodiag.model.sweep import Fabric, Fault, Gap, JudgedRun, SweepJudgement
from topodiag.sweep.words import GAP_ID, fault_words, look_at, severe
from topodiag.words.units import in_gbs, percent

LOW_ID = "BEN001"
"""The check of what is slower than it should be, and not by 30 %."""


def sweep_findings(judged: SweepJudgement, fabric: Fabric) -> list[Finding]:
    """Confirmed faults (errors), then suspects and slow placements (warnings), as `--fail-on` counts them."""
    faults = [_fault_finding(fault, judged, fabric) for fault in (*judged.confirmed, *judged.suspects)]
    return faults + [_gap_finding(gap) for gap in judged.gaps]


def _fault_finding(fault: Fault, judged: SweepJudgement, fabric: Fabric) -> Finding:
    words = fault_words(fault, fabric)
    state = "its runs fail" if fault.share is None else f"at {percent(fault.share)} of what is normal"
    named = words[0] if len(words) == 1 else f"one of {len(words)} places, not told apart yet: {'; '.join(words)}"
    runs = set(fault.runs)
    nodes = {part.place for part in fault.parts} & set(fabric.nodes)
    nics = {name for part in fault.parts if part.kind == "link" and (name := fabric.nic(part.rail))}
    slow = [run for run in judged.runs if run.run.id in runs and run.gbs is not None]
    worst = min(slow, key=lambda judged_run: judged_run.gbs or 0.0, default=None)
    return Finding(
        id=GAP_ID if severe(fault) else LOW_ID,
        severity=Severity.ERROR if fault.confirmed else Severity.WARNING,
        message=f"{named}: {state}" if fault.confirmed else f"suspect: {named}, {state}",
        observed=f"slow or failed runs: {', '.join(fault.runs)}",
        expected="" if worst is None or worst.reference is None else f"{in_gbs(worst.reference)}, as runs alike",
        fix=tuple(look_at(fault, fabric)) if fault.confirmed else (),
        where=Where(nodes=tuple(sorted(nodes)), nics=tuple(sorted(nics))),
        cost=_lost(worst),
        confidence=Confidence.HIGH if fault.confirmed else Confidence.LOW,
    )


def _gap_finding(gap: Gap) -> Finding:
    best, worst = gap.best, gap.worst
    return Finding(
        id=GAP_ID,
        severity=Severity.WARNING,
        message=f"{gap.collective} on {gap.ranks} ranks: one placement is {percent(gap.lost)} slower than another",
        observed=f"{in_gbs(worst.gbs or 0.0)} in run {worst.run.id}",
        expected=f"{in_gbs(best.gbs or 0.0)}, as in run {best.run.id}",
        fix=(),
        where=Where(nodes=tuple(worst.run.nodes)),
        cost=Cost((best.gbs or 0.0) - (worst.gbs or 0.0), gap.lost, "of the bus bandwidth of the better placement"),
    )


def _lost(worst: JudgedRun | None) -> Cost:
    if worst is None or worst.gbs is None or worst.reference is None or worst.share is None:
        return Cost(text="its runs give no bandwidth")
    return Cost(worst.reference - worst.gbs, 1 - worst.share, f"of the bus bandwidth of run {worst.run.id}")
