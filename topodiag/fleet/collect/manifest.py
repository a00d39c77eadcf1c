"""Kubernetes: the collector as a Job with one pod a node, or as a DaemonSet that captures again and again.

A pod runs the host's own Python and tools (`chroot`), because an image has no nvidia-smi that fits the driver; where
the host has no Python, the image's reads the host's files and runs no command. It asks for no GPU, so that it also
starts where the device plugin is broken, and it tolerates all taints: cordoned nodes are where the faults are.
"""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Sequence
from string import Template
from typing import Any

from topodiag.fleet.collect.boot import standard_input
from topodiag.fleet.collect.interface import Request
from topodiag.model.errors import InputError
from topodiag.words.own_data import own_text

IMAGE = "docker.io/library/python:3.12-slim"
"""Anything with sh, chroot, sleep and python3."""
MAX_CONFIG = 1_000_000
"""Bytes of a ConfigMap: etcd takes 1 MiB."""
NAME = "topodiag-collect"
_HOST, _CODE = "/host", "/opt/topodiag"
_LABEL = "kubernetes.io/hostname"
_GPUS = "nvidia.com/gpu.present"
_BOOT = '"import sys;exec(sys.stdin.buffer.readline())"'


def job(request: Request, nodes: Sequence[str], name: str, hold_s: float) -> list[dict[str, Any]]:
    """A ConfigMap with the collector and an indexed Job with one pod on each of these nodes, which writes its bundle
    into its log as marked lines. A pod stays for `hold_s` seconds, so that no second one starts on its node."""
    arguments = request.arguments
    run = f"{_run(arguments)}; sleep {hold_s:g}"
    affinity = {
        "nodeAffinity": _on(nodes),
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": _LABEL}
        ]},
    }  # fmt: skip
    spec = {
        "completionMode": "Indexed", "completions": len(nodes), "parallelism": len(nodes),
        "backoffLimitPerIndex": 0,
        "maxFailedIndexes": len(nodes), "ttlSecondsAfterFinished": 3600,
        "activeDeadlineSeconds": int(hold_s + request.node_s) + 300,
        "template": _template(request, name, run, {"affinity": affinity, "restartPolicy": "Never"}),
    }  # fmt: skip
    return [_config(request, arguments, name), _object("batch/v1", "Job", request, name, spec)]


def daemon_set(request: Request, nodes: Sequence[str], name: str, every_s: float, keep: str) -> list[dict[str, Any]]:
    """A ConfigMap with the collector and a DaemonSet that keeps a bundle below the host's folder `keep` every so many
    seconds; on these nodes, or on all that the GPU operator has labelled."""
    arguments = ("--into", keep, "--deadline", f"{request.deadline_s:g}", "--jitter", "5")
    run = f"while :; do {_run(arguments)}; sleep {every_s:g}; done"
    where: dict[str, Any] = {"nodeSelector": {_GPUS: "true"}}
    if nodes:
        where = {"affinity": {"nodeAffinity": _on(nodes)}}
    spec = {
        "selector": {"matchLabels": {"app": name}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        "template": _template(request, name, run, where, keep),
    }  # fmt: skip
    return [_config(request, arguments, name), _object("apps/v1", "DaemonSet", request, name, spec)]


def _run(arguments: Sequence[str]) -> str:
    """The collector with the host's Python, else with the image's on the host's files."""
    on_files = [f"{_HOST}{argument}" if argument.startswith("/") else argument for argument in arguments]
    return (
        f'if chroot {_HOST} /bin/sh -c "command -v python3" >/dev/null 2>&1;'
        f" then chroot {_HOST} python3 -c {_BOOT} < {_CODE}/collector;"
        f" else python3 {_CODE}/collector {shlex.join(on_files)} --quiet --root {_HOST}; fi"
    )


def _config(request: Request, arguments: Sequence[str], name: str) -> dict[str, Any]:
    """The collector behind the line that starts it from standard input. It is a zip archive all the same."""
    packed = standard_input(request.collector, request.mark, tuple(arguments), tied=False)
    data = base64.b64encode(packed).decode("ascii")
    if len(data) > MAX_CONFIG:
        raise InputError("the collector", f"has {len(data)} bytes in base64: a ConfigMap takes {MAX_CONFIG}")
    return _object("v1", "ConfigMap", request, name, None) | {"binaryData": {"collector": data}}


def _object(api: str, kind: str, request: Request, name: str, spec: dict[str, Any] | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": {"app": name}}
    if request.namespace:
        metadata["namespace"] = request.namespace
    document: dict[str, Any] = {"apiVersion": api, "kind": kind, "metadata": metadata}
    return document if spec is None else document | {"spec": spec}


def _on(nodes: Sequence[str]) -> dict[str, Any]:
    """The affinity of pods that run on these nodes alone."""
    match = {"matchExpressions": [{"key": _LABEL, "operator": "In", "values": list(nodes)}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [match]}}


def _template(request: Request, name: str, run: str, more: dict[str, Any], keep: str = "") -> dict[str, Any]:
    """The pod of pod.yaml, which with `keep` may write into that folder of the host."""
    import yaml  # noqa: PLC0415 - for Kubernetes only

    given = {"image": request.image or IMAGE, "run": run, "name": name}
    text = Template(own_text("fleet/collect/pod.yaml"))
    pod = yaml.safe_load(text.substitute({key: json.dumps(value) for key, value in given.items()}))
    if keep:
        pod["containers"][0]["volumeMounts"].append({"name": "bundles", "mountPath": _HOST + keep})
        pod["volumes"].append({"name": "bundles", "hostPath": {"path": keep, "type": "DirectoryOrCreate"}})
    return {"metadata": {"labels": {"app": name}}, "spec": pod | more}
