"""Which format a description of a cluster has, and its reader: one line per format."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from topodiag.evidence import marks as looks
from topodiag.evidence.cluster import csv as cluster_csv
from topodiag.evidence.cluster import fabric as cluster_fabric
from topodiag.evidence.cluster import kubernetes as cluster_kubernetes
from topodiag.evidence.cluster import slurm as cluster_slurm
from topodiag.evidence.interface import Blob
from topodiag.lazy import regex
from topodiag.model.cluster_facts import ClusterFacts
from topodiag.model.errors import InputError
from topodiag.words.own_data import own_data


class Format(NamedTuple):
    """`name` is what readers call it; `recognises` sees the first 64 KiB."""

    name: str
    recognises: Callable[[str], bool]
    read: Callable[[Blob], ClusterFacts]


FORMATS: tuple[Format, ...] = (
    Format("kubectl get nodes", looks.is_kubernetes, cluster_kubernetes.read),
    Format("ibnetdiscover", looks.is_discover, cluster_fabric.read_discover),
    Format("iblinkinfo", looks.is_linkinfo, cluster_fabric.read_linkinfo),
    Format("Slurm topology.yaml", looks.is_slurm_yaml, cluster_slurm.read_yaml),
    Format("Slurm topology.conf", looks.is_slurm_conf, cluster_slurm.read_conf),
    Format("CSV", looks.is_csv, cluster_csv.read),
)
_OTHERS = tuple((regex(other["pattern"]), other["hint"]) for other in own_data("evidence/cluster/others")["other"])
"""What people give in place of a cluster, and where it belongs."""
_HEAD = 1 << 16


def read_cluster(blob: Blob) -> ClusterFacts:
    """The cluster that a file describes. Raises InputError for a file of no known format, or a broken one."""
    head = Blob(blob.name, blob.data[:_HEAD]).text
    for row in FORMATS:
        if row.recognises(head):
            return row.read(blob)
    if not head.strip():
        raise InputError(blob.name, "is empty")
    belongs = next((hint for pattern, hint in _OTHERS if pattern.search(head)), "")
    raise InputError(
        blob.name,
        "is no description of a cluster that topodiag knows",
        hint=belongs
        or "Slurm topology.conf, topology.yaml or scontrol show topology, ibnetdiscover, iblinkinfo, kubectl get"
        " nodes -o json, or CSV with a header like node,gpus,rack,leaf",
    )
