"""What the comparison keeps of one node: who it is, what its checks found, and its facts by family.

The facts of a family that most nodes have alike are kept once: a digest names them by what they are, and nodes with
equal facts share one object. Identities and what is of the moment are not compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.checks.troubles.node import troubles
from topodiag.fleet.facts import facts_of
from topodiag.lazy import dataclass
from topodiag.model.finding import Finding, Input, Severity
from topodiag.model.fleet import FactKind, NodeFact, Outlier
from topodiag.model.node import Node
from topodiag.model.provenance import Topic
from topodiag.model.result import Trouble
from topodiag.words.own_data import own_data
from topodiag.words.units import grouped, most_of

Key = tuple[str, str, str]
"""Part, key and unit of a fact, in its family."""

ERRORS = frozenset({"errors", "times", "rows", "lines"})
"""Units of counters that speak of trouble; the others count traffic."""
_TRAFFIC: dict[str, tuple[str, int]] = own_data("fleet/families")["traffic"]
"""Counters of what was carried: who counts, and the bytes of one count (Linux
Documentation/ABI/stable/sysfs-class-infiniband; ethtool's counters of mlx5). An interface does not see RDMA, the wire
sees all."""
_SWITCHES = ("leaf switch", "spine switch", "core switch")
"""What Slurm calls switches alike, from the node up."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The categories of one family on one node, by key; `sources` says where each was read."""

    family: str
    values: tuple[tuple[Key, str], ...]
    sources: tuple[str, ...] = field(compare=False, default=())


Carried = tuple[tuple[str, float], ...]
"""Bytes that were sent and received, by port or interface, where that was read."""


@dataclass(frozen=True, slots=True)
class Digest:
    """One node. `machine` are the UUIDs of its GPUs, which tell machines of one name apart. `traits` are what it is
    compared by, `places` where it stands: (attribute, value).

    `numbers` are all of its numbers; of its counters `counters` has those that are not zero, and `counted` the names of
    all that were read. `carried` are the bytes that ports and interfaces sent and received, by part.
    """

    host: str
    path: str
    time: str
    machine: frozenset[str]
    traits: tuple[tuple[str, str], ...]
    places: tuple[tuple[str, str], ...]
    facts: tuple[Facts, ...]
    numbers: tuple[NodeFact, ...]
    counters: tuple[NodeFact, ...]
    counted: Facts
    carried: Carried
    uptime_s: float | None
    findings: tuple[Finding, ...]
    unexplained: tuple[Trouble, ...]
    read: Input | None = None
    """The capture as an input, with its checksum."""

    @property
    def is_empty(self) -> bool:
        """Whether the capture holds nothing: what it passes for would be a healthy node."""
        facts = [fact for fact in self.facts if fact != _NOT_SHOWN]
        return not (facts or self.numbers or self.counters or self.counted.values or self.findings or self.unexplained)


def digest_of(node: Node, path: str) -> Digest:
    """The digest of a node that was read from `path`, with what its checks find. Never raises."""
    outcomes = run(Subject.NODE, [node])
    facts = facts_of(node)
    counters = _counters(facts)
    errors = [counter for counter in counters if counter.unit in ERRORS]
    return Digest(
        host=node.host,
        path=path,
        time=node.time.value or "",
        machine=frozenset(gpu.uuid.value for gpu in node.gpus if gpu.uuid.value),
        traits=traits_of(node),
        places=places_of(node, path),
        facts=(*_categories(facts), *_no_gpu(node)),
        numbers=tuple(fact for fact in facts if fact.kind is FactKind.NUMBER),
        counters=tuple(error for error in errors if error.value),
        counted=Facts("counters", tuple((key_of(error), error.family) for error in errors)),
        carried=_carried(counters),
        uptime_s=node.os.uptime_s.value,
        findings=tuple(finding for outcome in outcomes for finding in outcome.findings),
        unexplained=tuple(trouble for trouble in troubles((node,), outcomes) if not trouble.harmless),
    )


def key_of(fact: NodeFact) -> Key:
    return fact.part, fact.key, fact.unit


def _categories(facts: Iterable[NodeFact]) -> Iterable[Facts]:
    by_family = grouped((fact.family, fact) for fact in facts if fact.kind is FactKind.CATEGORY)
    for family, own in by_family.items():
        values = tuple((key_of(fact), str(fact.value)) for fact in own)
        yield Facts(family, values, tuple(fact.source for fact in own))


def _counters(facts: Iterable[NodeFact]) -> Sequence[NodeFact]:
    """The counters in their order; those of the NVLinks of a device are added up, and read where the first counted."""
    counters: dict[tuple[str, Key], NodeFact] = {}
    for fact in facts:
        if fact.kind is FactKind.COUNTER:
            part, value = fact.part.partition("/link")[0], float(fact.value)
            at = fact.family, (part, fact.key, fact.unit)
            source = fact.source
            if at in counters:
                known = counters[at]
                source = known.source if known.value or not value else source
                value += float(known.value)
            counters[at] = NodeFact(fact.family, part, fact.key, value, fact.kind, fact.unit, source)
    return tuple(counters.values())


def _carried(counters: Iterable[NodeFact]) -> Carried:
    """Both directions together; where several count the same part, the one who saw most."""
    by_part: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for counter in counters:
        if counter.key in _TRAFFIC:
            who, size = _TRAFFIC[counter.key]
            by_part[counter.part][who] += float(counter.value) * size
    return tuple(sorted((part, max(own.values())) for part, own in by_part.items()))


_NOT_SHOWN = Facts("gpu", ((("", "GPUs", ""), "not shown"),))


def _no_gpu(node: Node) -> tuple[Facts, ...]:
    """That no GPU shows is a value to compare: a driver that hangs must not pass for a node that is as its siblings."""
    if node.gpus:
        return ()
    return (Facts("gpu", ((("", "GPUs", ""), "0"),)) if Topic.GPUS in node.topics else _NOT_SHOWN,)


def traits_of(node: Node) -> tuple[tuple[str, str], ...]:
    """What a node is compared by, from its evidence and not from its name: product, GPU, role, and whether the capture
    was taken on the host or in a container."""
    container = node.os.container.value
    return (
        ("product", node.system.value or ""),
        ("GPU", most_of((gpu.name.value for gpu in node.gpus if gpu.name.value), "")),
        ("role", "GPU node" if node.gpus else "no GPU"),
        ("captured in", "" if container in (None, "none") else str(container)),
    )


def places_of(node: Node, path: str) -> tuple[tuple[str, str], ...]:
    """Where a node stands, from the inside out, as far as its evidence says so."""
    from topodiag.fleet.cluster import rank_nodes_of  # noqa: PLC0415 - numpy

    seen = rank_nodes_of(node, path)
    pairs = [
        (_SWITCHES[min(level, 2)] if word == "switch" else word, name) for level, (word, name) in enumerate(seen.tiers)
    ]
    return (*pairs, ("NVLink domain", seen.domain)) if seen.domain else tuple(pairs)


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
