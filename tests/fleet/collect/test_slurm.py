"""A real Slurm: `fleet collect` by srun and sbcast, what `place emit` writes, and the scripts of docs/deploy.md."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests import program
from tests.fleet.collect import slurm_site
from topodiag.fleet.collect import srun as module
from topodiag.fleet.collect.archive import archive
from topodiag.fleet.collect.interface import Request
from topodiag.fleet.collect.run import collect
from topodiag.fleet.collect.srun import Srun
from topodiag.model.collect import State

_LACKING = slurm_site.lacking()
pytestmark = pytest.mark.skipif(bool(_LACKING), reason=f"no Slurm here: {_LACKING}")
ROOT = Path(__file__).resolve().parents[3]
ILL = "fixture:dgx-h100-gpu3-12of18-nvlink"


def block(name: str) -> str:
    """A script of docs/deploy.md, by the name in its second line."""
    text = (ROOT / "docs" / "deploy.md").read_text()
    (found,) = (match for match in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if f"# {name}\n" in match)
    return str(found)


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Mapping[str, str], Path]]:
    """The site, and its room. Its nodes have a topodiag that finds gpu04 ill, and the others as they are."""
    room = tmp_path_factory.mktemp("slurm")
    # `scan --deadline TIME` is of a live node: gpu04's is of a captured one that is ill
    (room / "bin").mkdir()
    script(
        room / "bin" / "topodiag",
        f'#!/bin/sh\ncase $SLURMD_NODENAME in gpu0[12]) exit 0;; gpu04) shift 3; set -- scan "$@" {ILL};; esac\n'
        f'cd {ROOT}; PYTHONPATH={ROOT}:{ROOT}/probes exec {sys.executable} -m topodiag "$@"\n',
    )
    for name in ("prolog", "healthcheck"):
        script(room / name, block(name).replace("/opt/topodiag/bin", f"{room}/bin").replace("/var/log", str(room)))
    with slurm_site.site(room, f"Prolog={room}/prolog\nPrologFlags=Alloc\n") as env:
        yield env, room


@pytest.fixture
def allocated(slurm: tuple[Mapping[str, str], Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, str]]:
    """Inside an allocation of two nodes."""
    env, _ = slurm
    process = subprocess.run(
        ["salloc", "--no-shell", "--exclusive", "-w", "gpu[01-02]"], env=env, capture_output=True, text=True, check=True
    )
    job = re.findall(r"job allocation (\d+)", process.stderr)[-1]
    for name, value in (("SLURM_CONF", env["SLURM_CONF"]), ("SLURM_JOB_ID", job), ("SLURM_JOB_NODELIST", "gpu[01-02]")):
        monkeypatch.setenv(name, value)
    yield os.environ
    subprocess.run(["scancel", job], env=env, check=False)


@pytest.mark.parametrize("by_tree", [False, True])
def test_srun_collects_from_an_allocation(
    allocated: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_tree: bool
) -> None:
    if by_tree:
        monkeypatch.setattr(module, "BY_TREE", 1)
    monkeypatch.setenv("SLURM_HOSTFILE", "/nowhere")  # the job's, and nothing to us
    nodes = ["gpu01", "gpu02", "gpu03"]
    done = collect(Srun(), nodes, str(tmp_path), Request(archive(), "", deadline_s=5.0), whole_s=100)
    states = {answer.node: answer.state for answer in done.answers}
    assert states == dict.fromkeys(nodes[:2], State.ANSWERED) | {"gpu03": State.REFUSED}
    assert "not in this allocation" in done.answers[2].why
    assert not list(Path("/tmp").glob("topodiag-probe-*.pyz"))


def test_switches_that_scontrol_shows_become_a_map_whose_host_file_srun_obeys(
    allocated: Mapping[str, str], tmp_path: Path
) -> None:
    shown = subprocess.run(["scontrol", "show", "topology"], env=allocated, capture_output=True, check=True).stdout
    (tmp_path / "topology.txt").write_bytes(shown)
    process = program.run(
        "place", "solve", "--topology", "topology.txt", "--exclude", "gpu[03-04]", "--system", "dgx-h100", "--tp", "8",
        "--format", "json", "--output", "map.json", cwd=tmp_path,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    program.run("place", "emit", "slurm-hostfile", "map.json", "--output", "hosts", cwd=tmp_path)
    hosts = (tmp_path / "hosts").read_text().split()
    assert hosts == ["gpu01"] * 8 + ["gpu02"] * 8
    hosts = [hosts[-1], hosts[0], hosts[-1]]  # the order of another map, not node after node
    (tmp_path / "hosts").write_text("".join(f"{host}\n" for host in hosts))
    env = dict(allocated) | {"SLURM_HOSTFILE": str(tmp_path / "hosts")}
    argv = ["srun", "--distribution=arbitrary", "--ntasks=3", "sh", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.splitlines()) == [f"{rank} {host}" for rank, host in enumerate(hosts)]
    refused = subprocess.run([*argv[:3], "-w", "gpu[01-02]", *argv[3:]], env=env, capture_output=True, check=False)
    assert refused.returncode != 0


def test_the_prolog_drains_a_node_with_an_error_and_no_other(slurm: tuple[Mapping[str, str], Path]) -> None:
    env, _ = slurm
    subprocess.run(
        ["srun", "--immediate=20", "-w", "gpu04", "true"], env=env, capture_output=True, timeout=60, check=False
    )
    subprocess.run(["srun", "-w", "gpu02", "true"], env=env, capture_output=True, timeout=60, check=True)
    assert "drain" in state(env, "gpu04")
    assert "drain" not in state(env, "gpu02")


def test_the_health_check_drains_with_the_reason(slurm: tuple[Mapping[str, str], Path]) -> None:
    env, room = slurm
    subprocess.run(["scontrol", "update", "nodename=gpu04", "state=resume"], env=env, check=False)
    for node in ("gpu03", "gpu04"):
        subprocess.run([str(room / "healthcheck")], env=dict(env) | {"SLURMD_NODENAME": node}, check=True, timeout=60)
    assert "drain" in state(env, "gpu04")
    assert "NVLink" in state(env, "gpu04")
    assert "drain" not in state(env, "gpu03")


def state(env: Mapping[str, str], node: str) -> str:
    time.sleep(0.5)
    argv = ["scontrol", "show", "node", node]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout.replace("DRAIN", "drain")
