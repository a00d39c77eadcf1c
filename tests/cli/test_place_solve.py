"""`topodiag place solve` and `place emit` as users run them."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import program

Run = Callable[..., "subprocess.CompletedProcess[str]"]
RACK = Path(__file__).parents[3] / "shared" / "corpus" / "jobs" / "h_gb200_2tray" / "logs"
SYSTEM = ("--system", "dgx-h100", "--nodes", "6", "--leaf", "3", "--oversubscription", "2")


@pytest.fixture
def place() -> Run:
    """The real program."""

    def run(*args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return program.run("place", *args, env={"COLUMNS": "100"}, input=stdin)

    return run


@pytest.fixture
def solved(place: Run) -> str:
    """A map around a broken node and one with six GPUs left."""
    broken = ("--exclude", "node002", "--exclude", "node004:0,1")
    done = place("solve", *SYSTEM, *broken, "--tp", "8", "--pp", "2", "--dp", "2", "--format", "json")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_map_avoids_what_is_broken_and_keeps_tensor_groups_whole(solved: str) -> None:
    document = json.loads(solved)
    assert [row["rank"] for row in document["map"]] == list(range(32))
    assert {row["host"] for row in document["map"]} == {"node001", "node003", "node005", "node006"}
    assert document["cost"]["tp"]["level"] == "node"
    assert document["violations"] == []
    assert document["gain_percent"] > 0
    assert document["ms_per_step"] >= document["bound_ms"] > 0


def test_a_map_goes_straight_to_a_launcher(place: Run, solved: str, tmp_path: Path) -> None:
    target = tmp_path / "hosts"
    done = place("emit", "slurm-hostfile", "-", "-o", str(target), stdin=solved)
    assert done.returncode == 0, done.stderr
    hosts = target.read_text().splitlines()
    assert hosts == [row["host"] for row in json.loads(solved)["map"]]
    assert f"SLURM_HOSTFILE={target} srun -n 32 -N 4" in done.stderr
    assert list(tmp_path.iterdir()) == [target]


def test_what_was_emitted_is_audited_as_the_same_map(place: Run, solved: str, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(place("emit", "slurm-hostfile", stdin=solved).stdout)
    again = place(
        "solve", *SYSTEM, "--slurm-hostfile", str(tmp_path / "hosts"), "--exclude", "node002", "--exclude",
        "node004:0,1", "--tp", "8", "--pp", "2", "--dp", "2", "--format", "json",
    )  # fmt: skip
    assert json.loads(again.stdout)["before"]["ms_per_step"] == pytest.approx(json.loads(solved)["ms_per_step"])


def test_groups_go_to_pytorch(place: Run, solved: str) -> None:
    output = place("emit", "new-group", stdin=solved).stdout
    assert "mesh_dim_names=('pp', 'dp', 'tp')" in output
    compile(output, "groups.py", "exec")


@pytest.mark.skipif(not RACK.is_dir(), reason="the corpus of jobs is not here: a rack's log is not solved")
def test_trays_of_a_rack_are_one_domain_to_the_solver_too(place: Run) -> None:
    done = place("solve", "--log", str(RACK), "--tp", "8", "--format", "json")
    document = json.loads(done.stdout)
    assert document["cost"]["tp"]["level"] == "nvlink"
    assert document["violations"] == []
    assert {(row["host"], row["gpu"]) for row in document["map"]} == {
        (f"node0{n}", gpu) for n in (0, 1) for gpu in range(4)
    }


def test_notes_name_the_file_that_was_written(place: Run, solved: str, tmp_path: Path) -> None:
    done = place("emit", "mpich", "-", "-o", str(tmp_path / "hosts"), stdin=solved)
    assert f"-machinefile {tmp_path / 'hosts'};" in done.stderr
