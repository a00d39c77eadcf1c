"""Clusters read from `kubectl get nodes -o json`."""

import json

import pytest

from tests.evidence.cluster.cluster_texts import facts, listed, node, refused
from topodiag.evidence.cluster.kubernetes import DOMAINS, TABLES, read_pods
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.model.cluster_facts import usable


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table[0]}-{table[1][0][0].rpartition('/')[2]}")
def test_every_writers_labels_make_levels_innermost_first(table: tuple[str, tuple[tuple[str, str], ...]]) -> None:
    used = table[1][:3]
    rows = [{label: f"g{number >> (place + 1)}" for place, (label, _) in enumerate(used)} for number in range(8)]
    cluster_facts = facts(listed(*(node(f"n{number}", row) for number, row in enumerate(rows))))
    assert [partition.group.tolist() for partition in cluster_facts.partitions] == [
        [number >> (place + 1) for number in range(8)] for place in range(len(used))
    ]
    assert len({partition.kind for partition in cluster_facts.partitions}) == len(used)


@pytest.mark.parametrize("label", DOMAINS)
def test_every_label_of_an_nvlink_domain_is_read(label: str) -> None:
    cluster_facts = facts(listed(*(node(f"n{n}", {label: f"d{n // 2}"}) for n in range(4))))
    assert cluster_facts.domain.group.tolist() == [0, 0, 1, 1]


def test_four_layers_of_aws_have_four_kinds() -> None:
    prefix = "topology.k8s.aws/network-node-layer-"
    rows = [{f"{prefix}{layer}": f"nn-{n >> (4 - layer)}" for layer in range(1, 5)} for n in range(16)]
    cluster_facts = facts(listed(*(node(f"n{n:02d}", row) for n, row in enumerate(rows))))
    assert [(partition.kind, partition.groups) for partition in cluster_facts.partitions] == [
        ("leaf", 16), ("spine", 8), ("core", 4), ("fabric", 2),
    ]  # fmt: skip


def test_nodes_that_cannot_take_pods_offer_no_gpu() -> None:
    down = node("n2", {})
    down["status"]["conditions"][0]["status"] = "Unknown"  # type: ignore[index]
    cluster_facts = facts(listed(node("n1", {}), down, node("n3", {}, unschedulable=True), node("cpu", {}, gpus="0")))
    assert cluster_facts.nodes == ("n1", "n2", "n3")
    assert usable(cluster_facts, 8).sum(axis=1).tolist() == [8, 0, 0]


def test_the_instance_type_names_the_system() -> None:
    labels = {"node.kubernetes.io/instance-type": "p5.48xlarge", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    cluster_facts = facts(listed(node("n1", labels)))
    assert (cluster_facts.system, cluster_facts.gpu) == ("p5.48xlarge", "NVIDIA-H100-80GB-HBM3")


@pytest.mark.parametrize(
    ("broken", "left"),
    [
        ([5, None, "n9", []], ("n1",)),
        ([{"kind": "Pod", "metadata": {"name": "p"}}], ("n1",)),
        ([{"kind": "Node", "metadata": []}, {"metadata": {"name": ["n9"]}}], ("n1",)),
        ([{"metadata": {"name": "n9", "labels": [1]}, "spec": 1, "status": "up"}], ("n1",)),
        ([{"metadata": {"name": "n9"}, "status": {"capacity": {"nvidia.com/gpu": 4}, "conditions": {}}}], ("n9", "n1")),
    ],
)
def test_an_entry_that_is_no_node_with_gpus_costs_itself(broken: list[object], left: tuple[str, ...]) -> None:
    assert facts(json.dumps({"kind": "List", "items": [*broken, node("n1", {})]})).nodes == left


def test_one_node_by_itself_is_a_cluster() -> None:
    assert facts(json.dumps(node("n1", {}))).nodes == ("n1",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (listed(node("n1", {}))[:-4], "is no JSON: "),
        ('{"kind": "NodeList", "items": 5}', "has no list of nodes"),
        ('{"kind": "List", "items": []}', "names no nodes"),
        ('{"kind": "List", "items": ' + "[" * 200_000, "is no JSON: "),
        ('{"kind": "List", "items": [{"spec": ' + '{"a":' * 200_000, "is no JSON: "),
    ],
    ids=["cut short", "no list", "none", "deep list", "deep node"],
)
def test_bad_kubernetes_json_is_one_clear_line(text: str, says: str) -> None:
    assert says in refused(text)
    assert "\n" not in refused(text)


# --- lists of pods in every form in which kubectl prints them: which pod is on which node ---------------------

WIDE = """\
NAMESPACE   NAME       READY   STATUS    RESTARTS      AGE   IP           NODE      NOMINATED NODE   READINESS GATES
ml          worker-0   1/1     Running   2 (5m ago)    12m   10.4.1.9     gke-77    <none>           <none>
ml          worker-1   0/1     Pending   0             12m   <none>       <none>    <none>           <none>
"""
DESCRIBED = """\
Name:             worker-0
Namespace:        ml
Node:             gke-77/10.0.0.77
Status:           Running
IP:               10.4.1.9
IPs:
  IP:           10.4.1.9
"""
EVENTS = """\
LAST SEEN   TYPE     REASON      OBJECT         MESSAGE
12m         Normal   Scheduled   pod/worker-0   Successfully assigned ml/worker-0 to gke-77
"""
POD = {
    "kind": "Pod",
    "metadata": {"name": "worker-0"},
    "spec": {"nodeName": "gke-77"},
    "status": {"podIP": "10.4.1.9", "hostIP": "10.0.0.77"},
}
YAML = """\
apiVersion: v1
kind: Pod
metadata:
  name: worker-0
spec:
  nodeName: gke-77
"""
TEXTS = {"wide": WIDE, "described": DESCRIBED, "events": EVENTS, "json": json.dumps(POD, indent=2), "yaml": YAML,
         "list": json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [POD]})}  # fmt: skip


@pytest.mark.parametrize("form", TEXTS)
def test_every_form_ties_the_pod_to_its_node(form: str) -> None:
    [tie] = read_pods(Blob("pods", TEXTS[form].encode()))
    assert tie.names[:2] == ("gke-77", "worker-0")


@pytest.mark.parametrize("form", TEXTS)
def test_every_form_is_recognised(form: str) -> None:
    assert Kind.PODS in kind_of_file(TEXTS[form].encode()).kinds


def test_addresses_are_names_of_the_machine_too() -> None:
    [tie] = read_pods(Blob("pods", TEXTS["json"].encode()))
    assert tie.names[2:] == ("10.4.1.9", "10.0.0.77")


def test_a_pod_that_waits_for_a_node_ties_nothing() -> None:
    assert "worker-1" not in str(read_pods(Blob("pods", WIDE.encode())))


@pytest.mark.parametrize("text", ["", "Name: x\n", "kind: Pod\nspec: 3\nnodeName: 5\n", WIDE[:180], "\0" * 50])
def test_a_text_that_says_less_ties_nothing(text: str) -> None:
    assert read_pods(Blob("pods", text.encode())) == ()
