"""The order of findings, causes first, each consequence below its cause with its reason; and the causes with all that
follows from them. One fault that several sources show is one cause. Decides no finding: it only relates those that the
checks made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from topodiag.lazy import regex
from topodiag.model.finding import Confidence, Finding, Follows, Severity
from topodiag.model.result import Case
from topodiag.model.verdict import Consequence
from topodiag.verdict.interface import RULES, Reach, Rule
from topodiag.verdict.scene import Scene
from topodiag.words.units import grouped

MOST_CAUSES = 64
"""Findings of one check that are tried as the cause of another one: beyond those, all say the same."""

_STAGES = (
    ("GPU",), ("NVL",), ("PCI", "FLT"), ("NIC",), ("NET008", "NET009", "NET010"), ("HST",),
    ("JOB002", "JOB003", "JOB004", "JOB010", "JOB013", "ENV", "GDR", "NET", "P2P", "NUM", "TOP"), ("JOB007",),
    ("JOB009", "JOB006", "JOB008"), ("JOB005", "JOB011", "JOB012", "JOB014", "JOB015", "BEN", "PLC"), ("JOB001",),
)  # fmt: skip
"""What can produce what, where nothing else decides: what stands earlier can produce what stands later."""

_ONLY_SLOW = ("ENV", "NET001", "NET003", "NET004", "NET006", "P2P", "GDR", "NUM", "BEN", "PLC", "TOP003", "HST003")
"""Faults that make a job slow. Of a job that failed they are not what its user asks for first."""

_FAILURES = ("JOB005", "JOB001")
"""What a job shows of its own end."""

_MEMBERS_MISSING = "JOB001"
"""Ranks that did not come up: hardly ever the cause."""

_MACHINE_STOPS = ("HST007", Severity.ERROR)
"""The kernel or its processors are at an end, and all that runs there."""

_SETTINGS = ("ENV", "JOB003")
"""Checks that find settings."""

LOW = "BEN001"
LOSSES = (LOW, "BEN005", "JOB015")
"""Checks that see a job or a run lose bandwidth."""
Key = tuple[object, ...]


def arranged(findings: Sequence[Finding], case: Case) -> tuple[Finding, ...]:
    """The findings of a case, worst first; each consequence names its cause and stands below it. The order is stable:
    equal evidence gives equal order."""
    failed = any(finding.id == "JOB005" and finding.severity is Severity.ERROR for finding in findings)
    ordered = sorted(findings, key=lambda finding: _key(finding, failed))
    parents = _parents(ordered, Scene(case))
    below = grouped((parent, child) for child, (parent, _) in parents.items())
    keys = [_key(finding, failed) for finding in ordered]
    roots = [at for at in range(len(ordered)) if at not in parents]
    roots.sort(key=lambda at: (not _ends_job(at, below, ordered), min(keys[place] for place in _tree(at, below))))
    order = []
    for root in roots:
        for at in _tree(root, below):
            head = ordered[at]
            if at in parents:
                parent, why = parents[at]
                above = ordered[parent]
                head = replace(head, follows=Follows(above.id, above.message, why))
                if head.id == LOW:
                    from topodiag.checks.bench.low import without_guess  # noqa: PLC0415 - where a run was measured

                    head = without_guess(head)
            order.append(head)
    return tuple(order)


def takes_part(cause: Finding, findings: Sequence[Finding], scene: Scene) -> str:
    """How a fault leads to a loss of bandwidth that another one stands above, "" where it does not: two faults may slow
    one run. What all nodes of the run have alike is how they are built, and in what is expected of them. `findings` are
    arranged."""
    if cause.severity is Severity.INFO:
        return ""
    below = ((one, one.follows.message) for one in findings if one.id in LOSSES and one.follows is not None)
    others = [loss for loss, above in below if above != cause.message and _may_explain(cause, loss)]
    losses = [loss for loss in others if not scene.nodes(loss) <= scene.nodes(cause)]
    rules = [rule for rule in RULES if cause.id in rule.causes] if losses else []
    texts = (rule.explains(cause, loss, scene) for loss in losses for rule in rules if loss.id in rule.leads_to)
    return next(filter(None, texts), "")


def _ends_job(root: int, below: dict[int, list[int]], ordered: Sequence[Finding]) -> bool:
    """Whether the failure of a job follows from this cause: then it is what its user asks for first. A failure that
    nothing explains is no cause of itself, and keeps its place."""
    if ordered[root].id in _FAILURES:
        return False
    return any(ordered[at].id in _FAILURES and ordered[at].severity is Severity.ERROR for at in _tree(root, below))


def _tree(root: int, below: dict[int, list[int]]) -> Iterator[int]:
    """A finding and all that follows from it, each below its cause."""
    pending = [root]
    while pending:
        at = pending.pop()
        yield at
        pending += reversed(below.get(at, ()))


def _parents(ordered: Sequence[Finding], scene: Scene) -> dict[int, tuple[int, str]]:
    """By finding, its cause and how that leads to it."""
    by_id, by_node = _places(ordered, scene)
    parents: dict[int, tuple[int, str]] = {}
    for rule in RULES:
        if rule.in_part or not any(check in by_id for check in rule.causes):
            continue
        for at in sorted(at for check in rule.leads_to for at in by_id.get(check, ())):
            if at in parents:
                continue
            other = ordered[at]
            tried = ((place, ordered[place]) for place in _candidates(rule, other, scene, by_id, by_node))
            causes = ((place, cause) for place, cause in tried if rule.notes or _may_explain(cause, other))
            reasons = ((place, rule.explains(cause, other, scene)) for place, cause in causes)
            pair = next((pair for pair in reasons if pair[1]), None)
            if pair is not None and not _leads_to(pair[0], at, parents):
                parents[at] = pair
    return parents


def _places(ordered: Sequence[Finding], scene: Scene) -> tuple[dict[str, list[int]], dict[tuple[str, str], list[int]]]:
    """The places of findings by check, and by check and machine."""
    by_id = grouped((finding.id, at) for at, finding in enumerate(ordered))
    on_nodes = ((finding.id, at, node) for at, finding in enumerate(ordered) for node in scene.nodes(finding))
    return by_id, grouped(((check, node), at) for check, at, node in on_nodes)


def _candidates(
    rule: Rule, other: Finding, scene: Scene, by_id: dict[str, list[int]], by_node: dict[tuple[str, str], list[int]]
) -> Iterator[int]:
    """The places of the findings of other checks that may be the cause by this rule."""
    for check in rule.causes:
        own = by_id.get(check, []) if check != other.id else []
        if len(own) > MOST_CAUSES and rule.reach is Reach.NODE:
            own = [at for node in sorted(scene.nodes(other)) for at in by_node.get((check, node), ())]
        yield from own[:MOST_CAUSES]


def _may_explain(cause: Finding, other: Finding) -> bool:
    """A note explains no fault, and a doubtful warning no error that is sure. That ranks left no line in the evidence
    follows from nothing."""
    if other.id == _MEMBERS_MISSING and other.severity is Severity.INFO:
        return False
    if other.id == "NET003" and other.settings and not cause.id.startswith(_SETTINGS):
        return False  # the NICs are up: no fault of a part took them, a setting did
    if cause.severity >= other.severity:
        return True
    doubtful = cause.confidence is Confidence.LOW and other.confidence is not Confidence.LOW
    return cause.severity is Severity.WARNING and not doubtful


def _leads_to(cause: int, at: int, parents: dict[int, tuple[int, str]]) -> bool:
    """Whether the cause itself follows from this finding."""
    while cause in parents and cause != at:
        cause = parents[cause][0]
    return cause == at


def _key(finding: Finding, failed: bool) -> Key:
    lost = finding.cost.gbs_lost or 0.0
    slow_only = failed and finding.severity is Severity.ERROR and finding.id.startswith(_ONLY_SLOW)
    return (
        -finding.severity,
        finding.id == _MEMBERS_MISSING,
        slow_only,
        (finding.id, finding.severity) != _MACHINE_STOPS,
        -finding.confidence,
        -lost,
        _stage(finding.id),
        finding.id,
        not (finding.where.gpus or finding.where.nics or finding.where.links),  # what names the part is told first
        finding.where.nodes,
        finding.message,
    )


def _stage(check: str) -> int:
    exact = next((at for at, names in enumerate(_STAGES) if check in names), None)
    return exact if exact is not None else next((at for at, names in enumerate(_STAGES) if check[:3] in names), 8)


SAME_FAULT = "the same fault, as another source shows it"
PEERS = "the peers of a port that fails get no answer"
STUCK = "a rank that is stuck in one group does not come to the next operation of another"

_ADDRESS = regex(r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b")
_A_NODE = regex(r"\ba node\b")
MOST_ALIKE = 64
"""Causes of one check on other nodes with which a further one is compared: of thousands none is the odd one."""
_ON_HARDWARE = ("GPU", "NVL", "NIC", "PCI", "HST")
"""Checks whose fault is on a node, whether or not the log says which."""
_BY_NATURE_ONE = frozenset({"PCI004", "TOP002", "NVL005", "PLC001", "PLC006"})
"""Checks whose findings on the same nodes are one fault whatever devices they name."""


class Tree:
    """One root finding, and what follows from it in the order of the findings."""

    def __init__(self, root: Finding) -> None:
        self.root = root
        self.below: list[Consequence] = []

    @property
    def effects(self) -> list[Finding]:
        """The findings that follow from it."""
        return [consequence.finding for consequence in self.below]

    def take(self, other: Tree, why: str) -> None:
        """Hang another tree below this one; of one fault the finding that tells more stays above."""
        root = other.root
        own = [replace(consequence, depth=consequence.depth + 1) for consequence in other.below]
        if (why == SAME_FAULT and _tells_more(root, self.root)) or (why == PEERS and _owns_port(root)):
            self.root, root = root, self.root
        self.below += [Consequence(root, why, 1), *own]


def _tells_more(one: Finding, other: Finding) -> bool:
    """Whether a finding names a place that the other does not name, or is surer of the same."""
    a, b = bool(one.where.nodes), bool(other.where.nodes)
    return a > b or (a == b and one.confidence > other.confidence)


def trees(findings: Sequence[Finding], scene: Scene) -> list[Tree]:
    """The roots of findings as `arranged` gives them, each with its consequences and their depth."""
    roots: list[Tree] = []
    depth: dict[tuple[str, str], int] = {}
    for finding in findings:
        above = finding.follows
        if above is None or not roots:
            roots.append(Tree(finding))
            depth = {(finding.id, finding.message): 0}
        else:
            level = depth.get((above.check, above.message), 0) + 1
            roots[-1].below.append(Consequence(finding, above.why, level))
            depth.setdefault((finding.id, finding.message), level)
    roots = _merged_roots(roots, scene)
    for tree in roots:
        tree.root = _at_its_place(tree, scene)
    return roots


def _at_its_place(tree: Tree, scene: Scene) -> Finding:
    """The root on the one node that all below it names, where it names none itself. A fault of hardware is on the node
    that shows what follows from it; what a job shows may be said by a peer, unless the job has no other host."""
    root = tree.root
    named = {node for finding in tree.effects for node in scene.nodes(finding)}
    if root.where.nodes or len(named) != 1 or not root.id.startswith(_ON_HARDWARE):
        return root
    own = [finding for finding in tree.effects if finding.where.nodes]
    hosts = [hosts for name, hosts in scene.hosts_of_jobs.items() if name in root.where.jobs or not root.where.jobs]
    of_hardware = any(finding.id.startswith(_ON_HARDWARE) for finding in own)
    if not of_hardware and not (hosts and all(host == named for host in hosts)):
        return root
    name = own[0].where.nodes[0]
    message = _A_NODE.sub(name, root.message, count=1)
    return replace(root, message=message, where=replace(root.where, nodes=(name,)))


def _merged_roots(roots: Sequence[Tree], scene: Scene) -> list[Tree]:
    """One tree for each fault: roots that are the same fault hang below the first of them."""
    devices = _Devices(scene, [tree.root for tree in roots])
    joined: list[Tree] = []
    by_check: dict[str, list[Tree]] = defaultdict(list)
    by_node: dict[tuple[str, str], list[Tree]] = defaultdict(list)
    for tree in roots:
        check, nodes = tree.root.id, scene.nodes(tree.root)
        near = by_check[check][:MOST_ALIKE] + [tree for node in sorted(nodes) for tree in by_node[check, node]]
        for first in near:
            why = _one_fault(first.root, tree.root, scene, devices)
            if why:
                first.take(tree, why)
                break
        else:
            joined.append(tree)
            by_check[check].append(tree)
            for node in nodes:
                by_node[check, node].append(tree)
    return joined


def _one_fault(first: Finding, other: Finding, scene: Scene, devices: _Devices) -> str:
    """Why two findings of one check are one fault; "" where they are two."""
    if first.where.jobs and other.where.jobs and set(first.where.jobs).isdisjoint(other.where.jobs):
        recorded = first.id == "JOB006" and _of_recorder(first, other, scene)
        return SAME_FAULT if recorded and not set(first.where.ranks).isdisjoint(other.where.ranks) else ""
    if first.id == "JOB006":
        stuck = first.severity > other.severity or first.confidence > other.confidence
        return STUCK if stuck and scene.same_job(first, other) else ""
    if first.id == "NET008" and (_is_peer(first, other, scene) or _is_peer(other, first, scene)):
        return PEERS
    if scene.nodes(first) != scene.nodes(other):
        return SAME_FAULT if _names_no_host(first, other, scene) and devices.one_place(first.id) else ""
    if first.id in _BY_NATURE_ONE or (scene.nodes(first) and devices.share_device(first, other)):
        return SAME_FAULT
    return ""


def _names_no_host(first: Finding, other: Finding, scene: Scene) -> bool:
    """Whether one of two faults of a node is told by a log that does not name its host, of a job that may run there."""
    if (scene.nodes(first) and scene.nodes(other)) or not first.id.startswith(_ON_HARDWARE):
        return False
    return first.severity is other.severity and scene.same_job(first, other)


def _owns_port(finding: Finding) -> bool:
    """Whether a finding of a log tells of an event of a port: only the port's own side sees one."""
    return "port error" in finding.message


def _is_peer(owner: Finding, other: Finding, scene: Scene) -> bool:
    """Whether one finding tells of an event of a port, and the other of retries towards an address of that host."""
    if not _owns_port(owner) or _owns_port(other) or scene.nodes(owner) & scene.nodes(other):
        return False
    return any(scene.host(address) in scene.nodes(owner) for address in _ADDRESS.findall(other.message))


def _of_recorder(first: Finding, other: Finding, scene: Scene) -> bool:
    """Whether one of both is told by dumps of the flight recorder alone."""
    named = {name for finding in (first, other) for name in finding.where.jobs}
    return any(scene.is_recorder(job) for job in scene.case.jobs if job.name in named)


class _Devices:
    """Devices of findings by what stays: the bus id where the case knows it, else the label."""

    def __init__(self, scene: Scene, findings: Sequence[Finding] = ()) -> None:
        self._places = grouped((finding.id, scene.nodes(finding)) for finding in findings)
        self._scene = scene
        self._bus: dict[tuple[str, str], str] = {}
        for node in scene.case.nodes:
            host = scene.host(node.host)
            labels = [(gpu.label, gpu.bus_id) for gpu in node.gpus]
            labels += [(name, nic.bus_id) for nic in node.nics for name in (nic.name, nic.rdma_name or nic.name)]
            for label, bus_id in labels:
                if bus_id:
                    self._bus.setdefault((host, label), bus_id)

    def one_place(self, check: str) -> bool:
        """Whether all roots of this check that name nodes name the same."""
        return len({*self._places[check]} - {frozenset()}) == 1

    def share_device(self, one: Finding, other: Finding) -> bool:
        """Whether they name a device in common, or one of them names none of the kind that the other names."""
        if one.severity is Severity.INFO or other.severity is Severity.INFO:
            return False
        a, b = self._labels(one), self._labels(other)
        if not one.where.gpus and not one.where.nics and not one.where.links:
            return False
        if not a.isdisjoint(b):
            return True
        return not (one.where.gpus and other.where.gpus) and not (one.where.nics and other.where.nics)

    def _labels(self, finding: Finding) -> set[str]:
        host = next(iter(sorted(self._scene.nodes(finding))), "")
        labels = [label.split(" ")[0] for label in (*finding.where.gpus, *finding.where.nics, *finding.where.links)]
        return {self._bus.get((host, label), label) for label in labels}
