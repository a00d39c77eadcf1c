"""Manifests that Kubernetes takes, whose pods do what they say, and a collection through kubectl's commands."""

import base64
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tables import texts
from topodiag.app.collect import manifest
from topodiag.fleet.collect import kubectl as module
from topodiag.fleet.collect.archive import archive
from topodiag.fleet.collect.interface import Request
from topodiag.fleet.collect.kubectl import Kubectl
from topodiag.fleet.collect.run import collect
from topodiag.model.collect import State
from topodiag.model.errors import InputError

validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate has the schemas of Kubernetes")


@cache
def collector() -> bytes:
    return archive()


def made(kind: str, *nodes: str, **more: Any) -> list[dict[str, Any]]:
    text = manifest(kind, nodes, Request(collector(), "", **more), every_s=3600, keep="/var/lib/topodiag")
    return list(yaml.safe_load_all(text))


def pod_of(objects: list[dict[str, Any]]) -> dict[str, Any]:
    pod: dict[str, Any] = objects[1]["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize("kind", ["job", "daemonset"])
@pytest.mark.parametrize("version", ["1.29", "1.33"])
def test_the_schemas_of_kubernetes_accept_each_object(kind: str, version: str) -> None:
    for record in made(kind, "gpu[1-3]", namespace="infra"):
        validate.validate(record, version, strict=True)


def test_a_job_has_one_pod_on_each_node_and_none_of_them_asks_for_a_gpu() -> None:
    objects = made("job", "gpu[1-3]")
    spec = objects[1]["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 3)
    terms = pod_of(objects)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["gpu1", "gpu2", "gpu3"]
    assert "podAntiAffinity" in pod_of(objects)["affinity"]
    assert pod_of(objects)["tolerations"] == [{"operator": "Exists"}]
    assert "nvidia" not in str(pod_of(objects)["containers"][0]["resources"])


def test_a_pod_writes_nowhere_on_the_host_but_where_bundles_are_kept() -> None:
    mounts = pod_of(made("daemonset"))["containers"][0]["volumeMounts"]
    assert [mount["mountPath"] for mount in mounts if not mount.get("readOnly")] == ["/host/var/lib/topodiag"]
    mounts = pod_of(made("job", "gpu1"))["containers"][0]["volumeMounts"]
    assert all(mount["readOnly"] for mount in mounts)


def test_the_collector_fits_into_what_kubectl_apply_remembers() -> None:
    config = made("job", "gpu1")[0]
    assert len(config["binaryData"]["collector"]) < 200_000  # an annotation takes 256 KiB


def test_a_folder_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="no folder"):
        manifest("daemonset", (), Request(b"", ""), every_s=1, keep="../etc")


def run_pod(objects: list[dict[str, Any]], room: Path, *, python: bool) -> str:
    """What the pod of a Job writes: its very command, with the host at another place, with or without Python there."""
    (room / "code").mkdir()
    (room / "code" / "collector").write_bytes(base64.b64decode(objects[0]["binaryData"]["collector"]))
    (room / "host").mkdir()
    command = pod_of(objects)["containers"][0]["command"][2].rpartition("; sleep")[0]
    command = command.replace("/opt/topodiag", f"{room}/code").replace("/host", f"{room}/host")
    if python:
        setup = f"mount --rbind / {room}/host"
    else:
        for name in ("proc", "sys"):
            (room / "host" / name).mkdir()
        setup = f"mount --rbind /proc {room}/host/proc; mount --rbind /sys {room}/host/sys"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{setup}; {command}"], capture_output=True, text=True, timeout=60,
        env=os.environ | {"NODE_NAME": "gpu1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="a chroot needs root")
@pytest.mark.parametrize("python", [True, False])
def test_the_command_of_a_pod_sends_a_bundle_with_and_without_python_on_the_host(tmp_path: Path, python: bool) -> None:
    lines = run_pod(made("job", "gpu1", deadline_s=5.0), tmp_path, python=python).splitlines()
    assert {line.split()[1] for line in lines} == {"gpu1"}
    assert lines[0].split()[2] == "hello"
    assert lines[-1].split()[2] == "end"


TEXTS = texts(__file__)
_KUBECTL = TEXTS["kubectl"]


def test_kubectl_creates_the_job_reads_each_log_and_deletes_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands are kubectl's, the answers are those of an API server, the log is the collector's own."""
    (tmp_path / "kubectl").write_text(_KUBECTL.format(room=tmp_path))
    (tmp_path / "kubectl").chmod(0o755)
    (tmp_path / "collector.pyz").write_bytes(collector())
    running = '{"metadata": {"name": "p-0"}, "spec": {"nodeName": "gpu1"}, "status": {"phase": "Running"}}'
    pulling = (
        '{"metadata": {"name": "p-1"}, "spec": {"nodeName": "gpu2"}, "status": {"phase": "Pending",'
        ' "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff",'
        ' "message": "Back-off pulling image"}}}]}}'
    )
    unschedulable = (
        '{"metadata": {"name": "p-2"}, "spec": {}, "status": {"phase": "Pending", "conditions": [{"status": "False",'
        ' "reason": "Unschedulable", "message": "0/3 nodes are available"}]}}'
    )
    (tmp_path / "pods.json").write_text(f'{{"items": [{running}, {pulling}, {unschedulable}]}}')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(module, "START_S", 0.0)
    request = Request(collector(), "", deadline_s=5.0)
    done = collect(Kubectl(), ["gpu1", "gpu2", "gpu3"], str(tmp_path / "to"), request, whole_s=60)
    answers = {answer.node: answer for answer in done.answers}
    assert answers["gpu1"].state is State.ANSWERED
    assert (answers["gpu2"].state, answers["gpu3"].state) == (State.REFUSED, State.REFUSED)
    assert "ImagePullBackOff: Back-off pulling image" in answers["gpu2"].why
    assert "Unschedulable: 0/3 nodes are available" in answers["gpu3"].why
    assert "job,configmap topodiag-collect-" in (tmp_path / "deleted").read_text()
