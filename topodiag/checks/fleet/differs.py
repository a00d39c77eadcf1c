"""Nodes of one kind beside each other: one that differs from its peers in a fact that can cost bandwidth or stability,
and a few populations: a roll-out in progress, and what else splits the same way."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import Advice, FleetCheck
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.fleet import Cohort, How, Outlier, Populations, fact_name, fact_words, spelled
from topodiag.model.provenance import Origin
from topodiag.words.own_data import own_data
from topodiag.words.units import few, grouped, percent, plural

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


_VALUES_SHOWN = 3
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
        ordered = sorted(judged.populations, key=lambda split: (-_severity_of_split(split), split.facts))
        return self.with_findings(judged, map(self._split, ordered))

    def _split(self, split: Populations) -> Finding:
        names = [fact_name(family, key) for family, key, _ in split.facts]
        sizes = " and ".join(str(len(group.nodes)) for group in split.groups[:_VALUES_SHOWN])
        with_ = _with(split)
        return self.finding(
            self.where([host for group in split.groups[1:] for host in group.nodes]),
            "two populations",
            f"{few(names, 2)}: populations of {sizes} nodes{with_}",
            severity=_severity_of_split(split),
            observed="; ".join(
                f"{plural(len(group.nodes), 'node')}: {few(group.values, _VALUES_SHOWN)}" for group in split.groups
            ),
            cost=weight_of(*split.facts[0][:2]).why,
            confidence=Confidence.HIGH if split.known >= 10 else Confidence.MEDIUM,
        )


def _with(split: Populations) -> str:
    association = split.association
    if association is None:
        return ""
    values = few(association.values, _VALUES_SHOWN)
    return f", split as by {association.attribute} ({values}: {percent(association.jaccard)} overlap)"


def _severity_of_split(split: Populations) -> Severity:
    return max(Severity.INFO if of in _HARMLESS else weight_of(of, key).severity for of, key, _ in split.facts)


MANY_ENOUGH = 5
"""Peers below which a difference is a hint: two against one is no majority that anybody should act on."""


@dataclass(frozen=True, slots=True)
class Weight:
    """How much a difference matters, why, and what to do."""

    severity: Severity
    why: str
    fix: str


_TABLE = own_data("checks/fleet/weights")
_WEIGHTS = [(Weight(Severity[e["severity"].upper()], e["why"], e["fix"]), e) for e in _TABLE["weight"]]
_BY_NAME = {entry["name"]: weight for weight, entry in _WEIGHTS if "name" in entry}
_BY_FAMILY = {family: weight for weight, entry in _WEIGHTS for family in entry.get("families", ())}
_KEYS = ((weight, entry.get("keys", {})) for weight, entry in _WEIGHTS)
_BY_KEY = {(of, key): weight for weight, keys in _KEYS for of, names in keys.items() for key in names}


def weight_of(family: str, key: str) -> Weight:
    """What a difference in a fact can cost."""
    if (family, key) in _BY_KEY:
        return _BY_KEY[family, key]
    if family == "kernel command line":
        return _BY_NAME["kernel" if _has_word("kernel", key) else "note"]
    return _BY_FAMILY.get(family, _BY_NAME["note"])


def weigh(outlier: Outlier) -> Weight:
    """The same for an outlier: a counter counts as what it counts."""
    if outlier.how is How.RATE:
        return _BY_NAME["mild rises" if _has_word("mild", outlier.key) else "rises"]
    return weight_of(outlier.family, outlier.key)


def _has_word(kind: str, key: str) -> bool:
    return any(word in key.lower() for word in _TABLE["words"][kind])


def matters(outlier: Outlier) -> bool:
    """Whether the difference can cost bandwidth or stability, and enough peers say that it is one."""
    return outlier.total >= MANY_ENOUGH and weigh(outlier).severity >= Severity.WARNING
