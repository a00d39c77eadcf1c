"""`topodiag place` with plain paths: each file is what its content says; a foreign one is named with its command."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from topodiag.cli import cli
from topodiag.cli.errors import run

JOBS = Path(__file__).parents[2] / "fixtures" / "jobs"
HOSTS = "gpu-a01 slots=8\ngpu-a02 slots=8\n"
TOPOLOGY = "SwitchName=leaf1 Nodes=gpu-a01\nSwitchName=leaf2 Nodes=gpu-a02\nSwitchName=spine Switches=leaf[1-2]\n"
TABLE = "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)\n#  size  count  type  redop  root  time\n"


def place(capsys: pytest.CaptureFixture[str], command: str, *args: str) -> tuple[int, str, str]:
    code = run(cli, ["place", command, *args])
    out, err = capsys.readouterr()
    return code, out, err


def written(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [str(folder / name) for name in texts]


def test_paths_are_what_the_options_would_have_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    hosts, topology = written(tmp_path, hosts=HOSTS, network=TOPOLOGY)
    log = str(JOBS / "split-tensor-groups" / "logs")
    by_option = place(capsys, "audit", "--hostfile", hosts, "--topology", topology, "--log", log, "--format", "json")
    by_path = place(capsys, "audit", log, topology, hosts, "--format", "json")
    assert by_path[0] == by_option[0] == 1
    assert json.loads(by_path[1])["violations"] == json.loads(by_option[1])["violations"]
    assert {violation["id"] for violation in json.loads(by_path[1])["violations"]} == {"PLC001", "PLC006"}


def test_a_folder_of_all_of_it_is_sorted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    written(tmp_path, hosts=HOSTS, network=TOPOLOGY)
    code, out, err = place(capsys, "audit", str(tmp_path), "--tp", "8")
    assert (code, err) == (0, "")
    assert "16 ranks on 2 nodes" in out


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


def test_bundles_are_the_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = place(
        capsys, "audit", "fixture:dgx-h100-healthy", "fixture:dgx-h100-gpu5-x4", "--tp", "8", "--picture"
    )
    assert code == 0
    assert "dgx-017" in out
    assert "dgx-040" in out


def test_what_is_left_aside_is_named_with_its_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    hosts, table = written(tmp_path, hosts=HOSTS, table=TABLE)
    code, _, err = place(capsys, "audit", hosts, table, "--tp", "8")
    assert code == 0
    assert err == f"note: {table}: not read, it is an nccl-tests table; topodiag bench {table} reads it\n"


@pytest.mark.parametrize("option", [(), ("--hostfile",), ("--rankfile",)])
def test_a_file_of_another_command_names_that_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: tuple[str, ...]
) -> None:
    (table,) = written(tmp_path, table=TABLE)
    code, out, err = place(capsys, "audit", *option, table, "--tp", "8")
    assert (code, out) == (2, "")
    assert f"topodiag bench {table} reads it" in err.splitlines()[0]


@pytest.mark.parametrize("second", ["path", "option"])
def test_two_files_of_where_ranks_sit_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, second: str
) -> None:
    one, two = written(tmp_path, one=HOSTS, two=HOSTS + "gpu-a03 slots=8\n")
    more = (two,) if second == "path" else ("--hostfile", two)
    code, _, err = place(capsys, "audit", one, *more, "--tp", "8")
    assert code == 2
    assert "give one" in err.splitlines()[0]


def test_standard_input_needs_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = place(capsys, "audit", "-", "--tp", "8")
    assert code == 2
    assert "--hostfile -" in err
