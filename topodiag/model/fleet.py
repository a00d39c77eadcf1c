"""A fleet: facts of many nodes in long form, the groups of nodes that may be compared, what differs inside them, and
how that is spelt.

`topodiag.fleet.facts` turns a node into facts, `topodiag.fleet.compare` compares them.
"""

from __future__ import annotations

from enum import Enum

from topodiag.lazy import dataclass
from topodiag.model.finding import Finding, Input, Outcome, Severity
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Trouble
from topodiag.words.own_data import own_data
from topodiag.words.units import few, fold_labels, spell_bytes


class FactKind(Enum):
    """How a fact may be compared between siblings, and over time."""

    CATEGORY = "category"
    """Equal or not: versions, modes, widths, counts of parts."""
    NUMBER = "number"
    """A quantity with noise: sizes, rates that were measured."""
    COUNTER = "counter"
    """Runs since boot or driver load: compared as a rate, and over time as growth."""
    IDENTITY = "identity"
    """Of this one part alone: serials, UUIDs, GUIDs, addresses. Rightly different on every node."""
    MOMENT = "moment"
    """Of the moment of the capture alone: clocks, use, uptime. Rightly different between captures."""


CLOSED = frozenset({"kernel command line", "kernel modules", "driver parameters", "nccl.conf", "kernel log"})
"""Families in which a key without a row is one that this node does not have, where another key has a row."""


@dataclass(frozen=True, slots=True)
class NodeFact:
    """One fact of one node. `part` is `gpu3`, `gpu3/link6`, `mlx5_0`, `mlx5_0/1`, a bus id, or "" for the node.

    `value` is text for a category and an identity, a number otherwise, in `unit` (bytes, s, GB/s, errors; "" for none).
    `source` is the file of the evidence and the line in it.
    """

    family: str
    part: str
    key: str
    value: str | int | float
    kind: FactKind = FactKind.CATEGORY
    unit: str = ""
    source: str = ""


class How(Enum):
    """By which rule a value was found to be odd."""

    UNLIKE = "unlike most"
    """A category that few nodes have, where most have one value."""
    PERMUTED = "permuted"
    """The same parts as on other nodes in another order."""
    FAR = "far from the median"
    """A number, by the median and the median absolute deviation of ten siblings and more."""
    RATIO = "out of the others' range"
    """A number among four to nine siblings."""
    RATE = "rises faster"
    """A counter, by its rate beside that of its siblings."""


@dataclass(frozen=True, slots=True)
class SharedFact:
    """A fact that is equal on all nodes of a cohort that show it, which are `known` nodes.

    `parts` have it (`gpu0`, `gpu1`, ...), "" for the node itself. `values` are the distinct ones by part: GPU i has
    that of GPU i of every other node.
    """

    family: str
    key: str
    parts: tuple[str, ...]
    values: tuple[str, ...]
    known: int
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Outlier:
    """Nodes that differ in one fact from most of their siblings. `usual_count` of `total` nodes have the `usual` value.

    `distance` is how far a number is away: in median absolute deviations, or as a ratio; None for a category.
    `gbs_lost` is what each of the nodes loses at its narrowest place, in GB/s, by the price of the node's own checks;
    `unpriced` says why there is none. `explained_by` is the check that has found and priced the same on each of these
    nodes.
    """

    family: str
    key: str
    parts: tuple[str, ...]
    value: str
    usual: str
    nodes: tuple[str, ...]
    usual_count: int
    total: int
    how: How = How.UNLIKE
    unit: str = ""
    distance: float | None = None
    source: str = ""
    gbs_lost: float | None = None
    unpriced: str = ""
    explained_by: str = ""


@dataclass(frozen=True, slots=True)
class Association:
    """What else parts the nodes in the same way: an attribute (`rack`, `leaf switch`), its values on one side, and the
    Jaccard index of both sets of nodes, 0 to 1."""

    attribute: str
    values: tuple[str, ...]
    jaccard: float


@dataclass(frozen=True, slots=True)
class Population:
    """One side of a split: the value of each fact that splits so, in the order of the split's facts, and its nodes."""

    values: tuple[str, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Populations:
    """Facts by which a cohort falls into a few groups, none of them odd; the largest group first. `facts` are
    (family, key, parts). `known` nodes show the facts."""

    facts: tuple[tuple[str, str, tuple[str, ...]], ...]
    groups: tuple[Population, ...]
    known: int
    association: Association | None = None


@dataclass(frozen=True, slots=True)
class Cohort:
    """Nodes that may be compared, by what their evidence says they are. `compared` is the number of facts that were
    read on three nodes or more; `varying` are those without a usual value."""

    name: str
    traits: tuple[tuple[str, str], ...]
    nodes: tuple[str, ...]
    compared: int = 0
    same: tuple[SharedFact, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    populations: tuple[Populations, ...] = ()
    varying: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FleetNode:
    """One node of a fleet: where its capture lies, when it was taken, and the number of its cohort."""

    host: str
    path: str
    time: str = ""
    cohort: int = 0


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Nodes that no job should get for now, all for the same reasons: (id of the check, message), worst first.
    `gbs_lost` is the largest price of a reason."""

    nodes: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]
    severity: Severity
    gbs_lost: float | None = None


@dataclass(frozen=True, slots=True)
class FleetResult:
    """A fleet compared. `findings` are those of every node, folded over nodes, and those of the cohorts; `exclusions`
    the nodes to leave out by reason; `inputs` has one for each capture; `left_out` captures that cannot be read or are
    older than another of their host."""

    nodes: tuple[FleetNode, ...]
    cohorts: tuple[Cohort, ...]
    findings: tuple[Finding, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    left_out: tuple[NotObserved, ...] = ()
    unexplained: tuple[Trouble, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    inputs: tuple[Input, ...] = ()

    @property
    def worst(self) -> Severity | None:
        return max((finding.severity for finding in self.findings), default=None)

    @property
    def failed(self) -> tuple[str, ...]:
        """The hosts to leave out, in the order of the nodes."""
        out = {host for exclusion in self.exclusions for host in exclusion.nodes}
        return tuple(node.host for node in self.nodes if node.host in out)

    @property
    def passed(self) -> tuple[str, ...]:
        out = set(self.failed)
        return tuple(node.host for node in self.nodes if node.host not in out)

    @property
    def shared_names(self) -> tuple[str, ...]:
        """Names that several machines have, as two clusters do whose captures lie together."""
        return tuple(dict.fromkeys(name_of(node.host) for node in self.nodes if name_of(node.host) != node.host))


def name_of(host: str) -> str:
    """What a machine calls itself: `gpu1` of `gpu1#2`, the second machine of that name."""
    return host.partition("#")[0]


_UNITS = ("errors", "times", "rows", "lines", "")
"""Units that the name of the fact says already."""
_LONGEST = 20
"""Digits of a number of bytes that can be meant."""


def spelled(value: str, unit: str) -> str:
    """A value with its unit: `16 GT/s`, `251.9 GiB`, `unlimited`."""
    if unit == "bytes":
        return spell_bytes(int(value)) if value.isdecimal() and len(value) < _LONGEST else value
    return value if unit in _UNITS else f"{value} {unit}"


def fact_name(family: str, key: str) -> str:
    """What a fact is called by itself: `firmware`, `kernel module nvidia_peermem`, `PCIe width`."""
    lead: str = own_data("fleet/families")["leads"].get(family, "")
    return key if key.lower().startswith(lead.strip().lower()) and lead else f"{lead}{key}"


def fact_words(outlier: Outlier) -> str:
    """`PCIe width of gpu3: 8 (199 of 200: 16)`."""
    parts = [part for part in outlier.parts if part]
    of = f" of {fold_labels(parts, 4)}" if parts else ""
    what = f"{fact_name(outlier.family, outlier.key)}{of}"
    if outlier.how is How.PERMUTED:
        return f"{what} in another order: {few(outlier.value.split('; '), 2, '; ')}"
    value = few(outlier.value.split("; "), 2, "; ") if len(parts) > 1 else outlier.value
    if outlier.how in (How.FAR, How.RATIO, How.RATE):
        return f"{what}: {spelled(value, outlier.unit)} (median {spelled(outlier.usual, outlier.unit)})"
    usual = few(outlier.usual.split("; "), 2, "; ") if len(parts) > 1 else outlier.usual
    count = f"{outlier.usual_count} of {outlier.total}"
    return f"{what}: {spelled(value, outlier.unit)} ({count}: {spelled(usual, outlier.unit)})"
