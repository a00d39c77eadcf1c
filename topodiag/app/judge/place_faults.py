"""Nodes with known faults, which a new map uses last: by their bundles, and by the log of the job that ran on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.intake.collected import resolve
from topodiag.model.cluster import Assignment, Cluster
from topodiag.model.finding import Severity
from topodiag.model.job import Job
from topodiag.words.fold import few, grouped, plural

_HARDWARE = ("GPU", "NVL", "PCI", "NIC", "TOP", "GDR", "HST")
"""Families whose findings in a log tell of a node, not of the job."""


def faults_of(bundles: Sequence[str], job: Job | None) -> dict[str, tuple[str, ...]]:
    """By host the ids of its errors. Raises TopodiagError where a bundle's path holds none, or a worker dies."""
    pairs: list[tuple[str, str]] = []
    if bundles:
        from topodiag.fleet.nodes import read_fleet  # noqa: PLC0415 - the checks of nodes, for bundles only

        for node in read_fleet([resolve(path) for path in bundles]).nodes:
            host = node.host.partition("#")[0]  # numbered where several machines have the name
            pairs += [(host, finding.id) for finding in node.findings if finding.severity is Severity.ERROR]
    if job is not None:
        pairs += [
            (host, finding.id)
            for outcome in run(Subject.JOB, [job])
            for finding in outcome.findings
            if finding.severity is Severity.ERROR and finding.id.startswith(_HARDWARE)
            for host in finding.where.nodes
        ]
    return {host: tuple(dict.fromkeys(ids)) for host, ids in grouped(pairs).items()}


def prefer_healthy(cluster: Cluster, world: int, faults: Mapping[str, tuple[str, ...]]) -> Cluster:
    """The cluster without its faulty nodes where `world` ranks fit on the others; else with a note that names the
    faulty nodes that take part."""
    faulty = [number for number, name in enumerate(cluster.names) if name in faults and cluster.usable[number].any()]
    if not faulty:
        return cluster
    named = few([f"{cluster.names[number]} ({', '.join(faults[cluster.names[number]])})" for number in faulty])
    usable = cluster.usable.copy()
    usable[faulty] = False
    have = f"{plural(len(faulty), 'node has a fault', 'nodes have faults')}: {named}"
    if int(usable.sum()) >= world:
        return replace(cluster, usable=usable, notes=(*cluster.notes, f"{have}; no rank is put there"))
    short = f"{world} ranks do not fit on the others, so ranks are put there (--exclude leaves them out)"
    return replace(cluster, notes=(*cluster.notes, f"{have}; {short}"))


def is_usable(cluster: Cluster, assignment: Assignment) -> bool:
    """Whether every rank of a layout sits on a GPU that may be used."""
    return bool(np.asarray(cluster.usable).ravel()[assignment.slot].all())
