"""What a sweep found, for programs: everything on the page, every run, and the faults as findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topodiag.model.finding import Input
from topodiag.model.sweep import Fabric, Fault, SweepJudgement, SweepPlan
from topodiag.report.documents.from_model import Document, document_of, from_model
from topodiag.sweep.findings import sweep_findings
from topodiag.sweep.words import GAP_ID, fault_words, severe, untold
from topodiag.words.fold import fold_hosts


def sweep_json(
    judged: SweepJudgement, plans: Sequence[SweepPlan], further: SweepPlan | None, inputs: Iterable[Input] = ()
) -> Document:
    """Everything on the page, and every run."""
    fabric = plans[-1].fabric
    return document_of(
        "sweep.SweepDocument",
        judged,
        inputs=inputs,
        format="topodiag-sweep-verdict",
        version=1,
        nodes=fold_hosts(fabric.nodes),
        rounds=len(plans),
        faults=[_fault(fault, fabric) for fault in (*judged.confirmed, *judged.suspects)],
        placements=[from_model("sweep.Gap", gap, check=GAP_ID) for gap in judged.gaps],
        next=None if further is None else {"round": further.round, "runs": len(further.runs)},
        findings=sweep_findings(judged, fabric),
    )


def _fault(fault: Fault, fabric: Fabric) -> Document:
    return from_model(
        "sweep.Fault",
        fault,
        check=GAP_ID if severe(fault) else None,
        where=fault_words(fault, fabric),
        nics=sorted({name for part in fault.parts if part.kind == "link" and (name := fabric.nic(part.rail))}),
        not_told_apart=untold(fault),
    )
