"""`topodiag place solve` and `place emit` as users run them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import program
from tests.tables import examples

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


def test_a_solution_says_how_it_is_written(place: Run) -> None:
    lines = [line.strip() for line in place("solve", "--nodes", "2", "--tp", "8").stdout.splitlines()]
    assert "next       for a launcher, this command with" in lines
    assert "--format json | topodiag place emit slurm-hostfile - -o hosts" in lines
    assert "place emit" not in place("solve", "--nodes", "2", "--tp", "8", "-q").stdout


def test_a_file_for_a_launcher_is_refused_where_a_report_would_be_written(place: Run, tmp_path: Path) -> None:
    target = tmp_path / "rank.txt"
    asked = ("solve", "--nodes", "2", "--tp", "8", "--for", "rankfile", "-o", str(target))
    done = place(*asked)
    assert done.returncode == 2
    assert f"topodiag place emit rankfile map.json -o {target}" in " ".join(done.stderr.split())
    assert not target.exists()
    assert place(*asked, "--format", "json").returncode == 0
    assert place("emit", "rankfile", str(target)).stdout.startswith("rank 0=node001")


@pytest.mark.parametrize(("nodes", "said"), [("4", "nothing to gain from another order"), ("8", "either is fine")])
def test_an_order_that_gains_nothing_is_not_called_the_only_one(place: Run, nodes: str, said: str) -> None:
    shown = place("solve", "--nodes", nodes, "--leaf", "4", "--tp", "8", "--pp", "2").stdout
    assert f"as fast as node by node: {said}" in shown


@pytest.mark.parametrize(("names", "code"), [("gpu[01-04]", 0), ("node[002-003]", 0), ("gpu[01-03]", 2)])
def test_nodes_that_only_a_count_makes_take_the_names_of_a_list(place: Run, names: str, code: int) -> None:
    done = place("solve", "--nodes", "4", "--nodelist", names, "--tp", "8")
    assert done.returncode == code
    assert f"ask the scheduler for {names}" in done.stdout or "as many as --nodes counts (4)" in done.stderr


@pytest.mark.parametrize("nodes", [8, 9])
def test_a_table_is_not_cut_for_its_last_rows(place: Run, nodes: int) -> None:
    shown = place("solve", "--nodes", str(nodes), "--tp", "4", "--pp", "2", "--for", "rankfile").stdout
    assert [f"node{n:03d}  " in shown for n in range(1, nodes + 1)] == [True] * nodes


@pytest.mark.parametrize("command", ["audit", "solve", "emit"])
def test_the_examples_of_the_help_fit_a_terminal(place: Run, command: str) -> None:
    shown = place(command, "--help").stdout
    examples = [line for line in shown.splitlines() if line.startswith("    topodiag place")]
    assert examples
    assert all(len(line) <= 80 for line in examples)


def test_groups_go_to_pytorch(place: Run, solved: str) -> None:
    output = place("emit", "new-group", stdin=solved).stdout
    assert "mesh_dim_names=('pp', 'dp', 'tp')" in output
    compile(output, "groups.py", "exec")


def test_fragments_are_explained(place: Run) -> None:
    free = ("--exclude", "node001:0-5", "--exclude", "node002:0-5")
    done = place("solve", "--system", "dgx-h100", "--nodes", "2", *free, "--tp", "4", "--dp", "1")
    assert "split  1 of 1 tp groups, such as ranks 0-3 on node[001-002]" in done.stdout
    assert "the free GPUs leave room" in done.stdout


@pytest.mark.skipif(not RACK.is_dir(), reason="the corpus of jobs is not here: a rack's log is not solved")
def test_trays_of_a_rack_are_one_domain_to_the_solver_too(place: Run) -> None:
    done = place("solve", "--log", str(RACK), "--tp", "8", "--format", "json")
    document = json.loads(done.stdout)
    assert document["cost"]["tp"]["level"] == "nvlink"
    assert document["violations"] == []
    assert {(row["host"], row["gpu"]) for row in document["map"]} == {
        (f"node0{n}", gpu) for n in (0, 1) for gpu in range(4)
    }


@examples("args", "said")
def test_bad_input_is_one_line(place: Run, args: tuple[str, ...], said: str) -> None:
    done = place(*args)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_map_that_no_launcher_can_use_names_its_file(place: Run, tmp_path: Path) -> None:
    target = tmp_path / "map.json"
    target.write_text('{"map": [{"rank": 0, "host": "a", "gpu": 0}, {"rank": 1, "host": "a", "gpu": 0}]}')
    done = place("emit", "slurm-hostfile", str(target))
    assert done.returncode == 2
    assert f"{target}: GPU 0 of a has two ranks" in done.stderr


def test_notes_name_the_file_that_was_written(place: Run, solved: str, tmp_path: Path) -> None:
    done = place("emit", "mpich", "-", "-o", str(tmp_path / "hosts"), stdin=solved)
    assert f"-machinefile {tmp_path / 'hosts'};" in done.stderr


def test_a_map_that_is_none_is_refused(place: Run) -> None:
    done = place("emit", "hostfile", "-", stdin='{"map": [{"rank": 1, "host": "a"}]}')
    assert done.returncode == 2
    assert "has no rank 0" in done.stderr
