"""The captures of a fleet, read by all cores or by a dask cluster, as digests in the order of their hosts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from topodiag.evidence.intake.bundle import Evidence, open_evidence
from topodiag.evidence.intake.captures import captures, evidence_of
from topodiag.evidence.intake.collected import changed
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.pieces import refusal
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.kinds import NODE_KINDS
from topodiag.fleet.cluster import find_bundles
from topodiag.fleet.digest import Digest, Facts, digest_of
from topodiag.fleet.sibling_nodes import Siblings
from topodiag.fleet.workers import FEW, by_all_cores
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.provenance import NotObserved
from topodiag.words.hosts import natural

CHUNK = 32
"""Captures that a worker takes at once: their equal facts travel once."""
_DASK_CHUNK = 200
"""Captures of one task on a cluster, where a task costs more to hand out."""
_SIBLINGS = Siblings()
"""The nodes that this process has read."""
Read = tuple[list[Digest], list[NotObserved]]


@dataclass(frozen=True, slots=True)
class Fleet:
    """All nodes that could be read, each once, by host; and the captures that were left out."""

    nodes: tuple[Digest, ...]
    left_out: tuple[NotObserved, ...] = ()


def read_fleet(
    paths: Sequence[str],
    *,
    workers: int | None = None,
    dask: str | None = None,
    on_read: Callable[[int, int], None] | None = None,
) -> Fleet:
    """The nodes at these paths: bundles, folders of them, or whatever `topodiag scan` reads. `workers` are processes,
    None: all cores; `dask` is `local`, `slurm` or a scheduler's address. `on_read` gets how many of how many captures
    were read. The same result for any number of workers. Raises InputError where there is none, TopodiagError when a
    worker dies."""
    places = list(dict.fromkeys(place for path in paths for place in _places(path)))
    chunk = _DASK_CHUNK if dask else CHUNK
    tasks = [places[at : at + chunk] for at in range(0, len(places), chunk)]
    known: dict[Facts, Facts] = {}
    nodes: list[Digest] = []
    left_out: list[NotObserved] = []
    done = 0
    for number, (digests, broken) in enumerate(_by_all(tasks, workers, dask)):
        nodes += (_shared(digest, known) for digest in digests)
        left_out += broken
        done += len(tasks[number])
        if on_read is not None:
            on_read(done, len(places))
    if not nodes:
        reasons = [left.why if left.what == paths[0] else f"{left.what}: {left.why}" for left in left_out[:1]]
        raise InputError(paths[0], f"holds no node that can be read: {(reasons or ['there is nothing to read'])[0]}")
    latest, older = _latest(nodes)
    return Fleet(tuple(sorted(latest, key=lambda node: natural(node.host))), (*left_out, *older))


def _places(path: str) -> Iterator[str]:
    """The bundles at a path; the path itself where it is something else that `scan` reads."""
    try:
        yield from find_bundles(path)
    except InputError:
        yield path


def _by_all(tasks: Sequence[list[str]], workers: int | None, dask: str | None) -> Iterator[Read]:
    if dask is not None:
        from topodiag.fleet.dask_engine import map_dask  # noqa: PLC0415 - an extra, and slow to load

        yield from map_dask(read_some, tasks, dask, workers)
        return
    yield from by_all_cores(read_some, tasks, worth=sum(map(len, tasks)) > FEW, chunk=1, workers=workers)


def read_some(places: Iterable[str]) -> Read:
    """The digests at some places, and what cannot be read of them."""
    known: dict[Facts, Facts] = {}
    digests: list[Digest] = []
    broken: list[NotObserved] = []
    for place in places:
        try:
            if why := changed(place):
                broken.append(NotObserved(place, why))
                continue
            for digest in _read(place):
                if digest.is_empty:
                    broken.append(NotObserved(place, "holds nothing that was read of the node"))
                else:
                    digests.append(_shared(digest, known))
        except InputError as error:
            broken.append(NotObserved(place, error.message.removeprefix(f"{place}: ").removeprefix(f"{place}/")))
    return digests, broken


def _read(place: str) -> list[Digest]:
    """The nodes at one place. Raises InputError where there is none."""
    try:
        evidence = open_evidence(place)
        if evidence.is_bundle:
            return [replace(digest_of(_SIBLINGS.read(evidence), place), read=_input(evidence, place))]
    except InputError:
        pass  # an archive of several nodes, a pattern, a fixture: the front door knows
    intake = gather([place])
    captured = captures(intake)
    if not captured.captures:
        raise refusal(intake, NODE_KINDS, "evidence of a node", captured.aside)
    return [_digest(evidence_of(capture, intake), capture.name) for capture in captured.captures]


def _digest(evidence: Evidence, name: str) -> Digest:
    return replace(digest_of(read_node(evidence).node, name), read=_input(evidence, name))


def _input(evidence: Evidence, name: str) -> Input:
    """A capture as one input; its checksum is that of the list `sha256sum` would print of its files, by path."""
    files = sorted(evidence.blobs, key=lambda blob: blob.name)
    listed = "".join(f"{hashlib.sha256(blob.data).hexdigest()}  {blob.name}\n" for blob in files)
    digest = hashlib.sha256(listed.encode("utf-8", "surrogateescape")).hexdigest()
    return Input(name, "capture", digest, lines=sum(blob.data.count(b"\n") for blob in files))


def _shared(digest: Digest, known: dict[Facts, Facts]) -> Digest:
    """The digest with those of its facts that are known already: equal facts of many nodes are one object."""
    facts = tuple(known.setdefault(fact, fact) for fact in digest.facts)
    return replace(digest, facts=facts, counted=known.setdefault(digest.counted, digest.counted))


def _latest(nodes: Sequence[Digest]) -> tuple[list[Digest], list[NotObserved]]:
    """The latest capture of each machine, and the others. Machines of one name (`localhost`) that have no GPU in common
    are several: `localhost#1`, `localhost#2`."""
    of_host: dict[str, list[list[Digest]]] = {}
    for one in sorted(nodes, key=lambda node: (node.time, node.path)):
        machines = of_host.setdefault(one.host.partition("#")[0], [])
        own = next((known for known in machines if _may_be_one(known[-1], one)), None)
        if own is None:
            machines.append([one])
        else:
            own.append(one)
    latest: list[Digest] = []
    older: list[NotObserved] = []
    for host, machines in of_host.items():
        for number, captures_ in enumerate(machines, 1):
            name = host if len(machines) == 1 else f"{host}#{number}"
            latest.append(_with_name(captures_[-1], name))
            older += [NotObserved(digest.path, f"an older capture of {name}") for digest in captures_[:-1]]
    return latest, older


def _may_be_one(a: Digest, b: Digest) -> bool:
    """Whether two captures of one name can be of one machine: where either shows no GPU, nothing says otherwise."""
    return not a.machine or not b.machine or not a.machine.isdisjoint(b.machine)


def _with_name(node: Digest, host: str) -> Digest:
    """The node, and its findings, under this name."""
    if node.host == host:
        return node
    findings = tuple(replace(finding, where=replace(finding.where, nodes=(host,))) for finding in node.findings)
    return replace(node, host=host, findings=findings)
