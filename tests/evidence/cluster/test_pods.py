"""Lists of pods in every form in which kubectl prints them: which pod is on which node."""

import json

import pytest

from topodiag.evidence.cluster.kubernetes import read_pods
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind

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
