"""The groups that a solved map could not keep together, as findings."""

from __future__ import annotations

from topodiag.model.dimensions import BY_NAME
from topodiag.model.finding import Finding, Severity, Where
from topodiag.placement.solve import Solved
from topodiag.words.fold import fold_hosts, fold_labels


def split_findings(solved: Solved) -> list[Finding]:
    """The groups that stay split in the map that was found, as the checks of a layout name them (PLC001, PLC002)."""
    return [
        Finding(
            id=_check_of(split.dimension),
            severity=Severity.WARNING,
            message=f"{split.groups} of {split.of} {split.dimension} groups stay split over NVLink domains",
            observed=f"ranks {fold_labels([str(rank) for rank in split.example])} on {fold_hosts(split.nodes)}",
            expected="each group in as few domains as its size needs",
            fix=(split.why,),
            where=Where(nodes=split.nodes, ranks=split.example),
        )
        for split in solved.solution.splits
    ]


def _check_of(dimension: str) -> str:
    """The check that speaks of a split of this dimension, or of any group that belongs together."""
    known = BY_NAME.get(dimension.split(maxsplit=1)[0])
    return (known.split_check if known is not None else "") or "PLC001"
