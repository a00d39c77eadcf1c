"""Descriptions of clusters as texts, and what is read of them."""

import json

import pytest

from topodiag.evidence.cluster.files import read_cluster
from topodiag.evidence.interface import Blob
from topodiag.model.cluster_facts import ClusterFacts
from topodiag.model.errors import InputError


def facts(text: str) -> ClusterFacts:
    return read_cluster(Blob("cluster", text.encode()))


def levels_of(cluster_facts: ClusterFacts) -> list[tuple[str, list[int]]]:
    return [(partition.kind, partition.group.tolist()) for partition in cluster_facts.partitions]


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        facts(text)
    return str(caught.value)


def node(name: str, labels: dict[str, str], gpus: object = "8", **spec: object) -> dict[str, object]:
    status = {"allocatable": {"nvidia.com/gpu": gpus}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def listed(*nodes: dict[str, object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(nodes)})
