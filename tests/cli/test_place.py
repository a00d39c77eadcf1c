"""Places of ranks: options of place, and place solve."""

import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from tests import program
from tests.files import filed, laid
from tests.tables import examples, parts
from topodiag.app.case.placement import Placement, open_placement
from topodiag.cli import cli
from topodiag.cli.errors import run
from topodiag.cli.place.options import place_options
from topodiag.model.errors import TopodiagError


def opened(*args: str) -> Placement:
    """What a command would get."""
    taken: list[Placement] = []

    @click.command()
    @place_options
    def command(*, asked: Any) -> None:
        taken.append(open_placement(asked))

    command.main(list(args), standalone_mode=False)
    return taken[0]


def refused(*args: str) -> str:
    with pytest.raises((TopodiagError, click.ClickException)) as caught:
        opened(*args)
    line = caught.value.format_message() if isinstance(caught.value, click.ClickException) else str(caught.value)
    assert "\n" not in line
    return line


@examples("args", "ready")
def test_options_make_the_job_and_its_cluster(args: list[str], ready: dict[str, Any]) -> None:
    assert parts(opened(*args), ready) == ready


def test_gpus_that_are_left_over_are_told() -> None:
    notes = opened("--nodes", "4", "--tp", "5").cluster.notes
    assert "30 ranks: as many whole replicas as fit; 2 of 32 GPUs are left over (--world-size)" in notes
    assert not any("left over" in note for note in opened("--nodes", "4", "--tp", "8").cluster.notes)


def test_groups_make_the_ranks_that_they_name(tmp_path: Path) -> None:
    ready = opened("--nodes", "2", "--groups", str(filed(tmp_path, "groups.json", '{"together": ["0-3", "4-7"]}')))
    assert (ready.world, ready.layout, len(ready.groups)) == (8, None, 1)


def test_a_hostfile_names_nodes_and_ranks_at_once(tmp_path: Path) -> None:
    ready = opened("--hostfile", str(filed(tmp_path, "hosts", "gpu1:8\ngpu2:8\n")), "--tp", "8")
    assert ready.cluster.names == ("gpu1", "gpu2")
    assert ready.world == 16


@examples("args", "says")
def test_bad_options_are_one_clear_line(args: tuple[str, ...], says: str) -> None:
    assert says in refused(*args)


@examples("option", "content", "says")
def test_a_bad_file_ends_with_2_and_one_line(
    option: str, content: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = filed(tmp_path, "file", content)
    shape = [] if option == "--topology" else ["--nodes", "4"]
    sizes = [] if option == "--groups" else ["--tp", "8"]
    assert run(cli, ["place", "audit", option, str(place), *shape, *sizes]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error
    assert len(error.strip().splitlines()) <= 2  # the error and its hint


# --- `topodiag place` with plain paths: each file is what its content says; a foreign one is named with its command


JOBS = Path(__file__).parents[2] / "fixtures" / "jobs"
HOSTS = "gpu-a01 slots=8\ngpu-a02 slots=8\n"
TOPOLOGY = "SwitchName=leaf1 Nodes=gpu-a01\nSwitchName=leaf2 Nodes=gpu-a02\nSwitchName=spine Switches=leaf[1-2]\n"


def place(capsys: pytest.CaptureFixture[str], command: str, *args: str) -> tuple[int, str, str]:
    code = run(cli, ["place", command, *args])
    out, err = capsys.readouterr()
    return code, out, err


def written(folder: Path, **texts: str) -> list[str]:
    return [str(laid(folder, texts) / name) for name in texts]


def test_paths_are_what_the_options_would_have_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    hosts, topology = written(tmp_path, hosts=HOSTS, network=TOPOLOGY)
    log = str(JOBS / "split-tensor-groups" / "logs")
    by_option = place(capsys, "audit", "--hostfile", hosts, "--topology", topology, "--log", log, "--format", "json")
    by_path = place(capsys, "audit", log, topology, hosts, "--format", "json")
    assert by_path[0] == by_option[0] == 1
    assert json.loads(by_path[1])["violations"] == json.loads(by_option[1])["violations"]
    assert {violation["id"] for violation in json.loads(by_path[1])["violations"]} == {"PLC001", "PLC006"}


def test_a_map_that_solve_wrote_goes_in_as_a_path(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (hosts,) = written(tmp_path, hosts=HOSTS)
    _, made, _ = place(capsys, "solve", hosts, "--tp", "8", "--format", "json")
    (saved,) = written(tmp_path, map=made)
    _, again, err = place(capsys, "audit", saved, "--tp", "8", "--format", "json")
    assert not err
    assert json.loads(again)["map"] == json.loads(made)["map"]


def test_logs_in_an_archive_are_the_layout(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = str(JOBS / "split-tensor-groups" / "logs")
    (network,) = written(tmp_path, network=TOPOLOGY)
    with tarfile.open(tmp_path / "job.tar.gz", "w:gz") as archive:
        archive.add(log, "logs")
    plain = place(capsys, "audit", log, network, "--format", "json")
    packed = place(capsys, "audit", str(tmp_path / "job.tar.gz"), network, "--format", "json")
    assert packed[0] == plain[0]
    assert json.loads(packed[1])["map"] == json.loads(plain[1])["map"]


# --- `topodiag place audit` as users run it: the verdict, the table at two widths, the JSON, the exit code ----

CLUSTER = ("--system", "dgx-h100", "--nodes", "4", "--leaf", "2", "--oversubscription", "2")
SIZES = ("--tp", "8", "--pp", "2", "--dp", "2")


def told(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = run(cli, ["place", "audit", *args])
    out, err = capsys.readouterr()
    return code, out, err


def document(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    _, out, err = told(capsys, *args, "--format", "json")
    assert not err
    answer: dict[str, Any] = json.loads(out)
    return answer


def test_a_map_in_json_goes_in_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first = document(capsys, *CLUSTER, *SIZES, "--rule", "cyclic")
    path = filed(tmp_path, "map.json", json.dumps(first))
    again = document(capsys, *CLUSTER, *SIZES, "--map", str(path))
    assert [each["path"] for each in again["inputs"]] == [str(path)]
    assert again | {"inputs": []} == first


def test_the_model_trained_changes_the_price_and_is_no_rule_of_thumb(capsys: pytest.CaptureFixture[str]) -> None:
    small = ("--model", "params=7B,layers=32", "--model", "hidden=4096")
    thumb, made = document(capsys, *CLUSTER, *SIZES), document(capsys, *CLUSTER, *SIZES, *small)
    assert made["step_ms"] < thumb["step_ms"] / 5
    assert not any("rule of thumb" in each for each in made["assumed"])


# --- `topodiag place solve` and `place emit` as users run them


Run = Callable[..., "subprocess.CompletedProcess[str]"]
RACK = Path(__file__).parents[3] / "shared" / "corpus" / "jobs" / "h_gb200_2tray" / "logs"
SYSTEM = ("--system", "dgx-h100", "--nodes", "6", "--leaf", "3", "--oversubscription", "2")


@pytest.fixture
def placing() -> Run:
    """The real program."""

    def run(*args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return program.run("place", *args, env={"COLUMNS": "100"}, input=stdin)

    return run


@pytest.fixture
def solved(placing: Run) -> str:
    """A map around a broken node and one with six GPUs left."""
    broken = ("--exclude", "node002", "--exclude", "node004:0,1")
    done = placing("solve", *SYSTEM, *broken, "--tp", "8", "--pp", "2", "--dp", "2", "--format", "json")
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


@pytest.mark.parametrize("kind", ["hostfile", "map", "log"])
def test_a_pipe_is_read_as_the_file_behind_it(placing: Run, solved: str, tmp_path: Path, kind: str) -> None:
    logs = sorted((JOBS / "nic-missing" / "logs").iterdir())
    text = {"hostfile": HOSTS, "map": solved, "log": "".join(log.read_text() for log in logs)}[kind]
    (path,) = written(tmp_path, text=text)
    sizes = () if kind == "log" else ("--tp", "8")
    by_pipe, by_path = (placing("audit", given, *sizes, "--format", "json", stdin=text) for given in ("-", path))
    assert by_pipe.returncode == by_path.returncode < 2, by_pipe.stderr
    assert json.loads(by_pipe.stdout)["map"] == json.loads(by_path.stdout)["map"]


def test_an_empty_pipe_is_refused(placing: Run) -> None:
    done = placing("audit", "-", "--tp", "8")
    assert done.returncode == 2
    assert "<stdin>" in done.stderr


def test_a_map_goes_straight_to_a_launcher(placing: Run, solved: str, tmp_path: Path) -> None:
    target = tmp_path / "hosts"
    done = placing("emit", "slurm-hostfile", "-", "-o", str(target), stdin=solved)
    assert done.returncode == 0, done.stderr
    hosts = target.read_text().splitlines()
    assert hosts == [row["host"] for row in json.loads(solved)["map"]]
    assert f"SLURM_HOSTFILE={target} srun -n 32 -N 4" in done.stderr
    assert list(tmp_path.iterdir()) == [target]


def test_what_was_emitted_is_audited_as_the_same_map(placing: Run, solved: str, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(placing("emit", "slurm-hostfile", stdin=solved).stdout)
    again = placing(
        "solve", *SYSTEM, "--slurm-hostfile", str(tmp_path / "hosts"), "--exclude", "node002", "--exclude",
        "node004:0,1", "--tp", "8", "--pp", "2", "--dp", "2", "--format", "json",
    )  # fmt: skip
    assert json.loads(again.stdout)["before"]["ms_per_step"] == pytest.approx(json.loads(solved)["ms_per_step"])


@pytest.mark.skipif(not RACK.is_dir(), reason="the corpus of jobs is not here: a rack's log is not solved")
def test_trays_of_a_rack_are_one_domain_to_the_solver_too(placing: Run) -> None:
    done = placing("solve", "--log", str(RACK), "--tp", "8", "--format", "json")
    document = json.loads(done.stdout)
    assert document["cost"]["tp"]["level"] == "nvlink"
    assert document["violations"] == []
    assert {(row["host"], row["gpu"]) for row in document["map"]} == {
        (f"node0{n}", gpu) for n in (0, 1) for gpu in range(4)
    }
