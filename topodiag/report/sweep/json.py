"""What a sweep found, for programs: everything on the page, every run, and the faults as findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import UNSET

from topodiag.model.finding import Confidence, Cost, Finding, Input, Severity, Where
from topodiag.model.sweep import Fabric, Fault, Gap, JudgedRun, Part, SweepJudgement, SweepPlan
from topodiag.report.documents.parts import findings_of, inputs_of, tool
from topodiag.report.documents.types import sweep as shape
from topodiag.report.documents.types.common import SCHEMA_VERSION
from topodiag.report.sweep.words import GAP_ID, fault_words, look_at, severe, untold
from topodiag.words.fold import fold_hosts
from topodiag.words.units import in_gbs, percent

LOW_ID = "BEN001"
"""The check of what is slower than it should be, and not by 30 %."""


def sweep_json(
    judged: SweepJudgement, plans: Sequence[SweepPlan], further: SweepPlan | None, inputs: Iterable[Input] = ()
) -> shape.SweepDocument:
    """Everything on the page, and every run."""
    fabric = plans[-1].fabric
    return shape.SweepDocument(
        schema_version=SCHEMA_VERSION,
        tool=tool(),
        inputs=inputs_of(inputs),
        format="topodiag-sweep-verdict",
        version=1,
        nodes=fold_hosts(fabric.nodes),
        rounds=len(plans),
        missing=judged.missing,
        faults=[_fault_json(fault, fabric) for fault in (*judged.confirmed, *judged.suspects)],
        placements=[_gap_json(gap) for gap in judged.gaps],
        notes=list(judged.notes),
        next=None if further is None else shape.NextRound(round=further.round, runs=len(further.runs)),
        runs=[_run_json(each) for each in judged.runs],
        findings=findings_of(sweep_findings(judged, fabric)),
        not_observed=[],
    )


def _fault_json(fault: Fault, fabric: Fabric) -> shape.Fault:
    return shape.Fault(
        confirmed=fault.confirmed,
        check=GAP_ID if severe(fault) else None,
        where=fault_words(fault, fabric),
        parts=[_part(part) for part in fault.parts],
        nics=sorted({name for part in fault.parts if part.kind == "link" and (name := fabric.nic(part.rail))}),
        not_told_apart=untold(fault) or None,
        share=fault.share,
        rounds=list(fault.rounds),
        runs=list(fault.runs),
    )


def _part(part: Part) -> shape.FaultPart:
    return shape.FaultPart(kind=part.kind, place=part.place, rail=part.rail if part.rail >= 0 else UNSET)


def _gap_json(gap: Gap) -> shape.Gap:
    return shape.Gap(
        check=GAP_ID,
        collective=gap.collective,
        ranks=gap.ranks,
        lost=gap.lost,
        best=shape.GapSide(run=gap.best.run.id, gbs=gap.best.gbs),
        worst=shape.GapSide(run=gap.worst.run.id, gbs=gap.worst.gbs),
    )


def _run_json(each: JudgedRun) -> shape.SweepRun:
    return shape.SweepRun(
        id=each.run.id,
        round=each.round,
        kind=each.run.kind,
        nodes=list(each.run.nodes),
        rail=each.run.rail,
        gpus=list(each.run.gpus),
        standing=each.standing.value,
        gbs=each.gbs,
        reference_gbs=each.reference,
        share=each.share,
        why=each.why,
    )


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
    slow = [each for each in judged.runs if each.run.id in runs and each.gbs is not None]
    worst = min(slow, key=lambda each: each.gbs or 0.0, default=None)
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
