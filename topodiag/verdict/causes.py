"""Causes with all that follows from them, out of findings that name what they follow from. One fault that several
sources show is one cause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from topodiag.lazy import regex
from topodiag.model.finding import Finding, Severity
from topodiag.model.verdict import Consequence
from topodiag.verdict.scene import Scene
from topodiag.words.units import grouped

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
    """The roots of findings as `order.arranged` gives them, each with its consequences and their depth."""
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
