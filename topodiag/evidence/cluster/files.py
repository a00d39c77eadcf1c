"""Which format a description of a cluster has, and its reader: one line per format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from topodiag.evidence import marks as looks
from topodiag.evidence.cluster import csv, fabric, kubernetes, slurm
from topodiag.evidence.interface import Blob
from topodiag.lazy import regex
from topodiag.model.cluster_facts import ClusterFacts
from topodiag.model.errors import InputError
from topodiag.words.own_data import own_data

READERS: Mapping[str, tuple[Callable[[str], bool], Callable[[Blob], ClusterFacts]]] = {
    "kubectl get nodes": (looks.is_kubernetes, kubernetes.read),
    "ibnetdiscover": (looks.is_discover, fabric.read_discover),
    "iblinkinfo": (looks.is_linkinfo, fabric.read_linkinfo),
    "Slurm topology.yaml": (looks.is_slurm_yaml, slurm.read_yaml),
    "Slurm topology.conf": (looks.is_slurm_conf, slurm.read_conf),
    "CSV": (looks.is_csv, csv.read),
}
"""By format, what knows it by the first 64 KiB, and its reader."""
_OTHERS = tuple((regex(other["pattern"]), other["hint"]) for other in own_data("evidence/cluster/others")["other"])
"""What people give in place of a cluster, and where it belongs."""
_HEAD = 1 << 16


def read_cluster(blob: Blob) -> ClusterFacts:
    """The cluster that a file describes. Raises InputError for a file of no known format, or a broken one."""
    head = Blob(blob.name, blob.data[:_HEAD]).text
    for recognises, read in READERS.values():
        if recognises(head):
            return read(blob)
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
