"""Nodes of one kind that fall into a few populations: a roll-out in progress, and what else splits the same way."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.fleet.weights import weight_of
from topodiag.checks.interface import FleetCheck
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.fleet import Cohort, Populations, fact_name
from topodiag.words.units import few, percent, plural

FEWEST = 3
_SHOWN = 3
_HARMLESS = frozenset({"os", "firmware", "driver", "kernel modules", "services", "system"})
"""Families in which two versions side by side cost no bandwidth: for the time of a roll-out that is as it should be."""


class TwoPopulations(FleetCheck, id="FLT002"):
    """FLT002: nodes of one kind fall into two populations

    What it finds
        Facts of which neither value is odd: half of the nodes have one driver, half another. Facts that split the nodes
        in the same way are told together, and so is what else goes with the split: a leaf switch, a rack, a folder of
        captures, a part of the node's name.

    Why it matters
        It is a roll-out in progress, or one that was never finished: a job that spans both populations runs with both
        versions, and a difference in speed between them looks like a slow rack.

    Evidence it reads
        All facts of all captures, as FLT001.

    When it stays silent
        Cohorts under 3 nodes. More than six values, or values of which the common ones cover less than four fifths of
        the nodes: these facts vary freely and are listed so. A value of at most one node in twenty is odd (FLT001).

    How to confirm
        topodiag fleet compare --format json      the nodes of each population

    How to fix
        Finish the roll-out, or keep jobs within one population until then.

    References
        NVIDIA DCGM issue 313 (one driver within a rack of NVL72); AMD-AGI/Primus preflight.
    """

    def observe(self, judged: Cohort, peers: Sequence[Cohort]) -> Outcome:
        if len(judged.nodes) < FEWEST:
            return self.unknown(judged, f"{plural(len(judged.nodes), 'node')} of this kind: there is no majority")
        if not judged.populations:
            return self.clean(judged, "no fact divides the nodes into populations")
        ordered = sorted(judged.populations, key=lambda populations: (-_severity(populations), populations.facts))
        return self.with_findings(judged, map(self._split, ordered))

    def _split(self, split: Populations) -> Finding:
        names = [fact_name(family, key) for family, key, _ in split.facts]
        sizes = " and ".join(str(len(group.nodes)) for group in split.groups[:_SHOWN])
        with_ = _with(split)
        return self.finding(
            self.where([host for group in split.groups[1:] for host in group.nodes]),
            "two populations",
            f"{few(names, 2)}: populations of {sizes} nodes{with_}",
            severity=_severity(split),
            observed="; ".join(
                f"{plural(len(group.nodes), 'node')}: {few(group.values, _SHOWN)}" for group in split.groups
            ),
            cost=weight_of(*split.facts[0][:2]).why,
            confidence=Confidence.HIGH if split.known >= 10 else Confidence.MEDIUM,
        )


def _with(split: Populations) -> str:
    association = split.association
    if association is None:
        return ""
    values = few(association.values, _SHOWN)
    return f", split as by {association.attribute} ({values}: {percent(association.jaccard)} overlap)"


def _severity(split: Populations) -> Severity:
    return max(Severity.INFO if of in _HARMLESS else weight_of(of, key).severity for of, key, _ in split.facts)
