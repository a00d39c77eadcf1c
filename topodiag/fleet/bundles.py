"""Bundles of many nodes, read by all cores: a capture takes a tenth of a second, and a cluster has thousands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.intake.bundle import open_evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.fleet.cluster import NodeSeen, find_bundles, read_or_why
from topodiag.fleet.cores import cpus
from topodiag.fleet.workers import end_with_parent, pool_of, starting
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity

_T = TypeVar("_T")
FEW = 24
"""Bundles that one process has read before others would have started."""
_CHUNK = 8
"""Bundles that a worker takes at once."""


@dataclass(frozen=True, slots=True)
class NodeFaults:
    """The ids of a node's findings at error level; `time` is that of its capture."""

    host: str
    time: str
    ids: tuple[str, ...]


def read_many(paths: Sequence[str]) -> Iterator[NodeSeen | str]:
    """What each bundle says of its node, or why it cannot be read, in the order of the paths. Raises TopodiagError when
    a worker dies."""
    return _by_all_cores(read_or_why, paths)


def judge_many(paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """By host the ids of its errors, of the nodes that have any. `paths` are bundles or folders of them; the latest
    bundle of a host counts. A bundle that cannot be read says nothing. Raises InputError for a path without a bundle,
    TopodiagError when a worker dies."""
    latest: dict[str, NodeFaults] = {}
    for each in _by_all_cores(judge_one, [each for path in paths for each in find_bundles(path)]):
        if each is not None and (each.host not in latest or latest[each.host].time < each.time):
            latest[each.host] = each
    return {host: each.ids for host, each in latest.items() if each.ids}


def judge_one(path: str) -> NodeFaults | None:
    """What the checks of a node call an error in one bundle, None where it cannot be read."""
    try:
        node = read_node(open_evidence(path)).node
    except InputError:
        return None
    errors = [
        found.id
        for outcome in run(Subject.NODE, [node])
        for found in outcome.findings
        if found.severity is Severity.ERROR
    ]
    return NodeFaults(node.host, node.time.value or "", tuple(dict.fromkeys(errors)))


def _by_all_cores(work: Callable[[str], _T], paths: Sequence[str]) -> Iterator[_T]:
    cores = cpus()
    if len(paths) <= FEW or cores < 2:
        yield from map(work, paths)
        return
    with pool_of(min(cores, -(-len(paths) // _CHUNK)), end_with_parent) as pool:
        with starting():
            read = pool.map(work, paths, chunksize=_CHUNK)
        yield from read
