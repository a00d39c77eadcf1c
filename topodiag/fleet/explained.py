"""Which differences a node's own checks have found and priced: the same cause is told once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.fleet.digest import Digest
from topodiag.model.finding import Finding, Severity
from topodiag.model.fleet import Outlier
from topodiag.words.own_data import own_data

_ANY_PART = ("pairing", "peer access", "interface")
"""Families whose parts are named otherwise than in findings: paths concern both ends, interfaces belong to cards."""
_OF_THE_WHOLE = ("GPU001", "NIC005", "NVL005", "GDR001", "HST", "NIC004")
"""Checks whose fault shows in facts of other parts as well: a card that is gone shifts the names of the others."""


def explained(outliers: Sequence[Outlier], nodes: Sequence[Digest]) -> list[Outlier]:
    """The outliers, those marked that a warning or an error of every node they are of has told already."""
    findings = {
        node.host: [finding for finding in node.findings if finding.severity >= Severity.WARNING] for node in nodes
    }
    return [_explained(outlier, findings) for outlier in outliers]


def _explained(outlier: Outlier, findings: Mapping[str, Sequence[Finding]]) -> Outlier:
    """The outlier as it is, or with the check that tells it and that check's price."""
    own: list[Finding] = []
    for host in outlier.nodes:
        finding = next((finding for finding in findings[host] if _speaks_of(finding, outlier)), None)
        if finding is None:
            return outlier
        own.append(finding)
    lost = max((finding.cost.gbs_lost for finding in own if finding.cost.gbs_lost is not None), default=None)
    why_not = "" if lost is not None else own[0].cost.text or outlier.unpriced
    return replace(outlier, explained_by=own[0].id, gbs_lost=lost, unpriced=why_not)


def _speaks_of(finding: Finding, outlier: Outlier) -> bool:
    if not finding.id.startswith(tuple(own_data("fleet/families")["checks"].get(outlier.family, ("?",)))):
        return False
    where = finding.where
    named = {label.lower() for label in (*where.gpus, *where.nics)} | {link.lower() for link in where.links}
    if not named or finding.id.startswith(_OF_THE_WHOLE) or outlier.family in _ANY_PART:
        return True
    parts = [part.partition("/")[0].lower() for part in outlier.parts]
    return any(not part or any(name.split()[0] == part for name in named if name) for part in parts)
