"""NVL005: a Fabric Manager that is not there, beside GPUs whose boards have NVSwitches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pasted import chain, loud, said
from tests.tables import examples
from topodiag.api import diagnose

A100, H100, B200 = "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3", "NVIDIA B200"
NOT_FOUND = "$ systemctl status nvidia-fabricmanager\nUnit nvidia-fabricmanager.service could not be found.\n"
PODS = """\
NAME                                       READY   STATUS                  RESTARTS   AGE
nvidia-cuda-validator-tq8cn                0/1     Init:CrashLoopBackOff   5          4m
nvidia-operator-validator-kl5vf            0/1     Init:CrashLoopBackOff   6          28m
"""


def listed(product: str, count: int) -> str:
    lines = (f"GPU {at}: {product} (UUID: GPU-5d3c1a30-0000-4d4c-8b8e-{at:012d})\n" for at in range(count))
    return "$ nvidia-smi -L\n" + "".join(lines)


@pytest.mark.parametrize("product", [A100, H100, B200])
@examples("service")
def test_a_manager_that_is_not_there_is_a_doubtful_warning(tmp_path: Path, product: str, service: str) -> None:
    (found,) = said(tmp_path, listed(product, 8) + service)["findings"]
    assert (found["id"], found["severity"], found["confidence"]) == ("NVL005", "warning", "low")


def test_it_stands_above_the_pods_that_try_to_start_cuda(tmp_path: Path) -> None:
    (tmp_path / "pods.txt").write_text(PODS)
    (tmp_path / "fm.txt").write_text(listed(A100, 8) + NOT_FOUND)
    document = json.loads(diagnose(str(tmp_path)).to_json())
    assert chain(document) == [("NVL005", ""), ("JOB009", "NVL005")]


def test_other_pods_that_crash_do_not_follow_from_it(tmp_path: Path) -> None:
    (tmp_path / "pods.txt").write_text(PODS.replace("nvidia-cuda-validator", "web").replace("nvidia-operator-val", "x"))
    (tmp_path / "fm.txt").write_text(listed(A100, 8) + NOT_FOUND)
    document = json.loads(diagnose(str(tmp_path)).to_json())
    assert dict(chain(document)) == {"JOB009": "", "NVL005": ""}


@pytest.mark.parametrize(
    "text",
    [
        listed(A100, 4) + NOT_FOUND,  # a board that joins its GPUs directly
        listed(A100, 2) + NOT_FOUND,  # two of them, as a job is given
        listed(A100, 1) + NOT_FOUND,
        listed("NVIDIA A100 80GB PCIe", 8) + NOT_FOUND,
        listed("NVIDIA L40S", 8) + NOT_FOUND,
        listed("NVIDIA GeForce RTX 4090", 8) + NOT_FOUND,
        listed("Orin (nvgpu)", 1) + NOT_FOUND,
        listed("NVIDIA GB200", 4) + NOT_FOUND,
        listed(A100, 8) + "$ systemctl is-active nvidia-fabricmanager\nactive\n",
        listed(A100, 8) + "Unit nvidia-imex.service could not be found.\n",
        listed(A100, 8) + "$ rpm -q nvidia-fabric-manager-535\npackage nvidia-fabric-manager-535 is not installed\n",
        NOT_FOUND,
    ],
)
def test_machines_that_need_none_or_have_one_are_silent(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []


def test_links_that_are_up_tell_that_it_runs_elsewhere(tmp_path: Path) -> None:
    names = [f"GPU{at}" for at in range(8)]
    rows = (f"{mine}\t" + "\t".join(" X " if mine == its else "NV12" for its in names) + "\n" for mine in names)
    matrix = "$ nvidia-smi topo -m\n\t" + "\t".join(names) + "\n" + "".join(rows)
    assert loud(tmp_path, listed(A100, 8) + NOT_FOUND + matrix) == []
