"""A node that differs from its peers in a fact that can cost bandwidth or stability."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.fleet.weights import MANY_ENOUGH, Weight, weigh
from topodiag.checks.interface import Advice, FleetCheck
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.fleet import Cohort, How, Outlier, fact_words, spelled
from topodiag.model.provenance import Origin
from topodiag.words.units import few, grouped, plural

FEWEST = 3
"""Nodes without which there is no majority."""
SURE = 10
"""Peers that make a majority beyond doubt."""
_SHOWN = 4


class DiffersFromSiblings(FleetCheck, id="FLT001"):
    """FLT001: a node differs from its peers in a fact that can cost bandwidth or stability

    What it finds
        Nodes of one kind (product, GPU, role) of which a few have another value than most: driver, firmware, BIOS,
        kernel command line, module parameters, limits, MTU, ACS, link widths and rates, numbers of parts, and which
        network card is near which GPU. The same parts in another order are found as well: GPU 0 with the card of GPU 3.
        Numbers that are far from the median, and counters that rise ten times faster than those of nine tenths of the
        peers.

    Why it matters
        A collective runs at the pace of its slowest node, and faults that only one node has are looked for in the
        network first. A difference that one of the node's own checks has found and priced is told there. What is
        narrower, slower or missing has the price that `topodiag scan` has for it; for the rest the cost says why there
        is none.

    Evidence it reads
        All facts of all captures. Serials, UUIDs, GUIDs, addresses and what is of the moment (clocks, use, uptime) are
        not compared; counters are compared by the hour, and by the bytes that the port carried where these were read.

    When it stays silent
        Cohorts under 3 nodes have no majority. A value that more than one node in twenty has is a population (FLT002),
        not an odd one. So is one that all nodes of a rack, a switch or a folder have and no others, where it is a thing
        that administrators roll out. A fact without a usual value is listed as varying. A fact that a node does not
        show is unknown there. Numbers within the noise of what measured them; fewer than 4 peers for numbers and
        counters. A counter that is high because its port carried more.

    How to confirm
        topodiag scan CAPTURE-OF-THE-NODE
        diff of the file and line that the evidence names, with those of a peer

    How to fix
        Bring the node to what its peers have, or exclude it from jobs until then: `topodiag fleet compare` writes
        the lists with --pass-list and --fail-list.

    References
        Iglewicz and Hoaglin 1993 (modified z-score); AMD-AGI/Primus preflight (stack drift across a cluster).
    """

    def observe(self, judged: Cohort, peers: Sequence[Cohort]) -> Outcome:
        if len(judged.nodes) < FEWEST:
            return self.unknown(judged, f"{plural(len(judged.nodes), 'node')} of this kind: there is no majority")
        groups = grouped((outlier.nodes, outlier) for outlier in judged.outliers if not outlier.explained_by)
        if not groups:
            return self.clean(judged, f"{plural(judged.compared, 'fact')} compared on {len(judged.nodes)} nodes")
        ordered = [(nodes, sorted(own, key=_order)) for nodes, own in groups.items()]
        ordered.sort(key=lambda item: (_order(item[1][0]), item[0]))
        return self.with_findings(judged, [self._differs(nodes, outliers) for nodes, outliers in ordered])

    def _differs(self, nodes: Sequence[str], outliers: Sequence[Outlier]) -> Finding:
        """What differs on these nodes, the weightiest first."""
        weight = weigh(outliers[0])
        rest = len(outliers) - 1
        words = "; ".join(fact_words(outlier) for outlier in outliers[:_SHOWN])
        more = f"; {plural(len(outliers) - _SHOWN, 'more fact')}" if len(outliers) > _SHOWN else ""
        return self.finding(
            self.where(nodes, gpus=_labels(outliers, "gpu"), nics=_labels(outliers, "nic")),
            Advice(_severity(outliers[0], weight), _confidence(outliers[0])),
            fact_words(outliers[0]) + (f", and {plural(rest, 'more fact')}" if rest else ""),
            observed=words + more,
            expected="; ".join(_usual(outlier) for outlier in outliers[:_SHOWN]),
            cost=_cost(outliers, weight),
            fix=tuple(dict.fromkeys(weigh(outlier).fix for outlier in outliers))[:2],
            evidence=[Origin(outlier.source) for outlier in outliers if outlier.source],
        )


_FIRST = ("nvlink", "pci", "nic", "gpu", "pairing", "acs", "mtu", "driver", "firmware")
"""Of facts that weigh alike, those of the links come first."""


def _order(outlier: Outlier) -> tuple[object, ...]:
    place = _FIRST.index(outlier.family) if outlier.family in _FIRST else len(_FIRST)
    return -weigh(outlier).severity, place, -len(outlier.parts), outlier.family, outlier.key, outlier.parts


def _severity(outlier: Outlier, weight: Weight) -> Severity:
    """Of a difference that is a hint alone: a note."""
    return weight.severity if _confidence(outlier) > Confidence.LOW else Severity.INFO


def _confidence(outlier: Outlier) -> Confidence:
    if outlier.total < MANY_ENOUGH:
        return Confidence.LOW
    return Confidence.HIGH if outlier.total >= SURE and outlier.how is not How.RATIO else Confidence.MEDIUM


def _usual(outlier: Outlier) -> str:
    if outlier.how is How.PERMUTED:
        return f"the order of {outlier.usual_count} of {outlier.total} nodes: {few(outlier.usual.split('; '), 2, '; ')}"
    if outlier.how in (How.FAR, How.RATIO, How.RATE):
        return f"{outlier.key} near {spelled(outlier.usual, outlier.unit)}, the median of {outlier.total} nodes"
    return f"{spelled(outlier.usual, outlier.unit)}, as on {outlier.usual_count} of {outlier.total} nodes"


def _cost(outliers: Sequence[Outlier], weight: Weight) -> Cost:
    """What the links lose, where topology says so; else why it matters, and why that has no price."""
    lost = [outlier.gbs_lost for outlier in outliers if outlier.gbs_lost is not None]
    unpriced = outliers[0].unpriced if weight.severity > Severity.INFO and not lost else ""
    return Cost(max(lost) if lost else None, text=weight.why + (f" (no price: {unpriced})" if unpriced else ""))


def _labels(outliers: Sequence[Outlier], kind: str) -> list[str]:
    parts = dict.fromkeys(part for outlier in outliers for part in outlier.parts if part and ":" not in part)
    if kind == "gpu":
        return [part.upper() for part in parts if part.startswith("gpu") and part[3:].isdigit()]
    return list(dict.fromkeys(part.partition("/")[0] for part in parts if not part.startswith(("gpu", "numa"))))
