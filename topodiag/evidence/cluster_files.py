"""Which format a description of a cluster has, and its reader: one line per format."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from topodiag.evidence import cluster_csv
from topodiag.evidence.cluster_facts import ClusterFacts
from topodiag.evidence.interface import Blob
from topodiag.model.errors import InputError


class Format(NamedTuple):
    """`name` is what the option `--topology-format` and messages call it."""

    name: str
    recognises: Callable[[str], bool]
    read: Callable[[Blob], ClusterFacts]


FORMATS: tuple[Format, ...] = (Format("csv", cluster_csv.recognises, cluster_csv.read),)
_HEAD = 1 << 16


def read_cluster(blob: Blob) -> ClusterFacts:
    """The cluster that a file describes. Raises InputError for a file of no known format, or a broken one."""
    head = blob.text[:_HEAD]
    for each in FORMATS:
        if each.recognises(head):
            return each.read(blob)
    if not head.strip():
        raise InputError(blob.name, "is empty")
    raise InputError(
        blob.name,
        "is no description of a cluster that topodiag knows",
        hint="Slurm topology.conf or topology.yaml, ibnetdiscover, iblinkinfo, kubectl get nodes -o json, or CSV with a"
        " header like node,gpus,rack,leaf",
    )
