"""The better map of a job whose ranks are badly placed, for its page: that of `topodiag place solve`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topodiag.model.errors import TopodiagError
from topodiag.model.finding import Severity
from topodiag.model.result import Result

if TYPE_CHECKING:
    from topodiag.model.layout import Layout
    from topodiag.placement.solve import Solved


def better_placement(result: Result, paths: Sequence[str], layout: Layout | None = None) -> Solved | None:
    """The map found on the evidence at `paths`, beside the layout of the job. None where no finding blames the
    placement, where the evidence cannot be read a second time, or where it says too little for a map."""
    blamed = any(finding.id.startswith("PLC") and finding.severity > Severity.INFO for finding in result.findings)
    if not blamed or "-" in paths:
        return None
    from topodiag.app.case.place_paths import PlaceOptions  # noqa: PLC0415 - heavy
    from topodiag.app.judge.placing import solve_placement  # noqa: PLC0415

    try:
        solved = solve_placement(PlaceOptions(layout=layout, paths=tuple(paths)))
    except TopodiagError:
        return None
    return solved if solved.solution.cost.step_us < solved.before_cost.step_us else None
