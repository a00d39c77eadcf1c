"""The wiring of `topodiag place`: a layout, from a launcher's file, a rule or a job's logs, on its cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from topodiag.app.case.opening import blob_at
from topodiag.app.case.place_paths import place_options
from topodiag.app.case.placement import PlaceError, PlaceOptions, open_placement
from topodiag.app.judge.judged import judged_result
from topodiag.app.judge.placing import audited, solve_placement, talk_for
from topodiag.model.cluster import Assignment, Cluster, PlaceMap
from topodiag.model.errors import TopodiagError
from topodiag.model.finding import Severity
from topodiag.model.layout import Layout
from topodiag.model.result import Case, Result
from topodiag.placement.audit import Audit
from topodiag.placement.groups import Talk
from topodiag.placement.solve import Solved
from topodiag.placement.view import Look, look_of


def audit_placement(options: PlaceOptions, trained: Mapping[str, Any] | None = None) -> tuple[Audit, Result]:
    """What a layout costs, and what the same GPUs could give; and what the checks of layouts say of it. Without a
    layout ranks are numbered node by node. Raises TopodiagError."""
    placement = open_placement(options)
    judged, outcomes = audited(placement, talk_for(placement, trained))
    return judged, judged_result(Case(inputs=options.inputs), outcomes)


def look_at(cluster: Cluster, talk: Talk, layouts: Sequence[tuple[str, Assignment]], dimension: str = "") -> Look:
    """These layouts by one dimension, by default the innermost. Raises PlaceError for one that the job lacks."""
    look = look_of(cluster, talk, layouts, dimension)
    if look is None:
        named = dict.fromkeys(demand.dimension for demand in talk.demands if demand.size > 1)
        names = ", ".join(named) or "none with two ranks"
        raise PlaceError(f"--dimension {dimension[:40]!r}: the job has {names}.")
    return look


def read_map(path: str) -> PlaceMap:
    """A map that `topodiag place solve --format json` wrote; `-` is standard input. Raises InputError."""
    from topodiag.evidence.layout.rank_files import read_place_map  # noqa: PLC0415 - for this command only

    return read_place_map(blob_at(path))


def better_placement(result: Result, paths: Sequence[str], layout: Layout | None = None) -> Solved | None:
    """The map found on the evidence at `paths`, beside the layout of the job. None where no finding blames the
    placement, where the evidence cannot be read a second time, or where it says too little for a map."""
    blamed = any(finding.id.startswith("PLC") and finding.severity > Severity.INFO for finding in result.findings)
    if not blamed or "-" in paths:
        return None
    try:
        solved = solve_placement(place_options({}, paths, layout=layout))
    except TopodiagError:
        return None
    return solved if solved.solution.cost.step_us < solved.before_cost.step_us else None
