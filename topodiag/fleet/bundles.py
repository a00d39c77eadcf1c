"""Bundles of many nodes, read by all cores: a capture takes a tenth of a second, and a cluster has thousands."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.intake.bundle import open_evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.fleet.cluster import find_bundles
from topodiag.fleet.workers import FEW, by_all_cores
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity


@dataclass(frozen=True, slots=True)
class NodeFaults:
    """The ids of a node's findings at error level; `time` is that of its capture."""

    host: str
    time: str
    ids: tuple[str, ...]


def judge_many(paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """By host the ids of its errors, of the nodes that have any. `paths` are bundles or folders of them; the latest
    bundle of a host counts. A bundle that cannot be read says nothing. Raises InputError for a path without a bundle,
    TopodiagError when a worker dies."""
    latest: dict[str, NodeFaults] = {}
    bundles = [bundle for path in paths for bundle in find_bundles(path)]
    for core in by_all_cores(judge_one, bundles, worth=len(bundles) > FEW):
        if core is not None and (core.host not in latest or latest[core.host].time < core.time):
            latest[core.host] = core
    return {host: faults.ids for host, faults in latest.items() if faults.ids}


def judge_one(path: str) -> NodeFaults | None:
    """What the checks of a node call an error in one bundle, None where it cannot be read."""
    try:
        node = read_node(open_evidence(path)).node
    except InputError:
        return None
    errors = [
        finding.id
        for outcome in run(Subject.NODE, [node])
        for finding in outcome.findings
        if finding.severity is Severity.ERROR
    ]
    return NodeFaults(node.host, node.time.value or "", tuple(dict.fromkeys(errors)))
