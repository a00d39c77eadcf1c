"""kubectl: a Job with one pod on each node; a bundle comes back as the lines of its pod's log."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from typing import Any

from topodiag.fleet.collect.interface import Ear, Request, Transport
from topodiag.fleet.collect.manifest import NAME, job
from topodiag.fleet.collect.processes import Job, Pump, answer_of

START_S = 120.0
"""For scheduling and the pull of the image. A pod that has not started by then is a node that refused."""
POLL_S = 2.0
LOGS_AT_ONCE = 32
"""Each log is a connection through the API server."""


class Kubectl(Transport):
    """Nodes of the cluster that kubectl's context names, by their label kubernetes.io/hostname."""

    name = "kubectl"
    without = "use --via ssh, srun or share"

    def ask(self, request: Request, nodes: Sequence[str], ear: Ear, within_s: float) -> bool:
        name = f"{NAME}-{secrets.token_hex(4)}"  # a second attempt is another Job
        space = ("--namespace", request.namespace) if request.namespace else ()
        end = time.monotonic() + within_s
        objects = job(request, nodes, name, within_s + request.node_s)
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        # create, not apply: apply would keep all of it a second time, in an annotation
        kubectl("create", *space, "-f", "-", given=json.dumps(listed).encode())
        try:
            pods = _started(name, space, nodes, min(START_S, within_s), ear)
            jobs = [Job(node, ("kubectl", "logs", "--follow", *space, pod)) for node, pod in pods.items()]
            pump = Pump(ear, min(request.fanout, LOGS_AT_ONCE), request.node_s, _is_last)
            return pump.run(jobs, end - time.monotonic())
        finally:
            kubectl("delete", "job,configmap", name, *space, "--ignore-not-found", "--wait=false")


def _is_last(line: bytes) -> bool:
    """Whether a bundle ends with this line. A log goes on after it, unread."""
    return b" end " in line[:200] or b" fail " in line[:200]


def _started(name: str, space: Sequence[str], nodes: Sequence[str], limit_s: float, ear: Ear) -> dict[str, str]:
    """The pod of each node that has started one. Of the others the ear hears why."""
    end = time.monotonic() + limit_s
    while True:
        listed = json.loads(kubectl("get", "pods", *space, "-l", f"app={name}", "-o", "json") or b"{}")
        pods = listed.get("items") or []
        running = {str(pod["spec"].get("nodeName")): str(pod["metadata"]["name"]) for pod in pods if _runs(pod)}
        if len(running) >= len(nodes) or time.monotonic() > end:
            break
        time.sleep(POLL_S)
    waiting = [_why(pod) for pod in pods if not _runs(pod)]
    by_node = {node: why for node, why in waiting if node}
    other = next((why for node, why in waiting if not node), "no pod was scheduled on it")
    for node in nodes:
        if node not in running:
            ear.complains(node, f"kubectl: {by_node.get(node, other)}".encode())
            ear.ends(node, 1)
    return {node: pod for node, pod in running.items() if node in set(nodes)}


def _runs(pod: dict[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") in {"Running", "Succeeded", "Failed"} and bool(
        pod["spec"].get("nodeName")
    )


def _why(pod: dict[str, Any]) -> tuple[str, str]:
    """The node of a pod that does not run ("" before it has one), and the reason in Kubernetes's words."""
    status = pod.get("status", {})
    node = str(pod.get("spec", {}).get("nodeName") or "")
    for part in status.get("containerStatuses") or ():
        waiting = part.get("state", {}).get("waiting") or {}
        if waiting.get("reason"):
            return node, f"{waiting['reason']}: {waiting.get('message') or ''}".rstrip(": ")
    for condition in status.get("conditions") or ():
        if condition.get("status") == "False" and condition.get("message"):
            return node, f"{condition.get('reason', '')}: {condition['message']}"
    return node, f"its pod is {status.get('phase') or 'unknown'}"


def kubectl(*argv: str, given: bytes = b"") -> bytes:
    """Standard output of kubectl. Raises InputError."""
    return answer_of("kubectl", *argv, given=given, hint="does `kubectl get nodes` answer?")
