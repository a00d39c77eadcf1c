"""The faults of a sweep as findings, as `bench read` counts and prints them."""

from __future__ import annotations

from topodiag.model.finding import Confidence, Cost, Finding, Severity, Where
from topodiag.model.sweep import Fabric, Fault, Gap, JudgedRun, SweepJudgement
from topodiag.sweep.words import GAP_ID, fault_words, look_at, run_words, severe, untold
from topodiag.words.units import few, fold_hosts, in_gbs, numbered, percent, plural

RUNS_TOLD = 4
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
    own = set(fault.runs)
    runs = [run for run in judged.runs if run.run.id in own]
    rounds = numbered("round", fault.rounds)
    nodes = {part.place for part in fault.parts} & set(fabric.nodes)
    nics = {name for part in fault.parts if part.kind == "link" and (name := fabric.nic(part.rail))}
    slow = [run for run in runs if run.gbs is not None]
    worst = min(slow, key=lambda judged_run: judged_run.gbs or 0.0, default=None)
    return Finding(
        id=GAP_ID if severe(fault) else LOW_ID,
        severity=Severity.ERROR if fault.confirmed else Severity.WARNING,
        message=f"{named}: {state}" if fault.confirmed else f"suspect: {named}, {state}",
        observed=f"{plural(len(runs), 'run')} of {rounds}: {few([run_words(run) for run in runs], RUNS_TOLD, '; ')}",
        expected="" if worst is None or worst.reference is None else f"{in_gbs(worst.reference)}, as runs alike",
        fix=_steps(fault, fabric) if fault.confirmed else (),
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
        observed=_placed(worst),
        expected=_placed(best),
        fix=(),
        where=Where(nodes=tuple(worst.run.nodes)),
        cost=Cost((best.gbs or 0.0) - (worst.gbs or 0.0), gap.lost, "of the bus bandwidth of the better placement"),
    )


def _placed(judged_run: JudgedRun) -> str:
    run = judged_run.run
    return f"{in_gbs(judged_run.gbs or 0.0)} on {fold_hosts(run.nodes)}, {run.why or run.id}"


def _steps(fault: Fault, fabric: Fabric) -> tuple[str, ...]:
    """What to look at; the first step says what the runs cannot tell apart."""
    first, *rest = look_at(fault, fabric)
    alike = untold(fault)
    return (f"{first} ({alike})" if alike else first, *rest)


def _lost(worst: JudgedRun | None) -> Cost:
    if worst is None or worst.gbs is None or worst.reference is None or worst.share is None:
        return Cost(text="its runs give no bandwidth")
    return Cost(worst.reference - worst.gbs, 1 - worst.share, f"of the bus bandwidth of run {worst.run.id}")
