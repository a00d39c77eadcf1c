"""`topodiag place` with plain paths: each file is what its content says; a foreign one is named with its command."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.files import laid
from topodiag.cli import cli
from topodiag.cli.errors import run

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


def test_standard_input_needs_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = place(capsys, "audit", "-", "--tp", "8")
    assert code == 2
    assert "--hostfile -" in err


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
    path = tmp_path / "map.json"
    path.write_text(json.dumps(first))
    again = document(capsys, *CLUSTER, *SIZES, "--map", str(path))
    assert [each["path"] for each in again["inputs"]] == [str(path)]
    assert again | {"inputs": []} == first


def test_the_model_trained_changes_the_price_and_is_no_rule_of_thumb(capsys: pytest.CaptureFixture[str]) -> None:
    small = ("--model", "params=7B,layers=32", "--model", "hidden=4096")
    thumb, made = document(capsys, *CLUSTER, *SIZES), document(capsys, *CLUSTER, *SIZES, *small)
    assert made["step_ms"] < thumb["step_ms"] / 5
    assert not any("rule of thumb" in each for each in made["assumed"])
