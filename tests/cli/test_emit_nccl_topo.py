"""`topodiag emit nccl-topo` as users run it."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from tests import program
from topodiag.evidence.nccl_xml import read_file

GUEST = "fixture:vm-flat-pci"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "nodes"
HOST = "fixture:dgx-h100-healthy"
COMPUTE = (0, 3, 4, 5, 6, 9, 10, 11)
PAIRS = ",".join([*(f"GPU{at}=GPU{at}" for at in range(8)), *(f"mlx5_ib{a}=mlx5_{b}" for a, b in enumerate(COMPUTE))])


@pytest.fixture
def topodiag():
    """The real program: what it makes is what is tested."""

    def run(*args, **kwargs):
        return program.run(*args, env={"COLUMNS": "120"}, **kwargs)

    return run


def one_line(run) -> str:
    """The one line of an error, without its hint."""
    assert run.returncode == 2, run.stderr
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    lines = [line for line in run.stderr.splitlines() if not line.startswith("  hint: ")]
    assert len(lines) == 1, run.stderr
    return lines[0].removeprefix("topodiag: error: ")


def test_a_guest_of_an_unknown_provider_gets_no_check_mark_for_a_file_that_changes_nothing(topodiag, tmp_path) -> None:
    guest = tmp_path / "guest"
    shutil.copytree(FIXTURES / "vm-flat-pci", guest)
    for path in guest.rglob("*"):
        if path.is_file() and "Microsoft" in (text := path.read_text(errors="surrogateescape")):
            path.write_text(text.replace("Microsoft Corporation", "ACME"), errors="surrogateescape")
    content = " ".join(topodiag("emit", "nccl-topo", str(guest)).stderr.split())
    assert content.startswith("▲ the topology file NCCL 2.28 loads it, and decides as it does without it")
    assert "name the instance type (--instance NAME)" in content


def test_a_bare_file_holds_the_places_and_leaves_the_devices_to_nccl(topodiag) -> None:
    run = topodiag("emit", "nccl-topo", GUEST, "--instance", "ND96isr_H100_v5", "--nodes", "2", "--bare")
    assert run.returncode == 0, run.stderr
    tree = read_file(run.stdout.encode(), "bare.xml").tree
    assert {node.tag for node in tree.walk()} == {"system", "cpu", "pci"}
    groups = [{pci.get("busid") for pci in switch.children} for numa in tree.children for switch in numa.children]
    assert groups == [{f"{at:04x}:00:00.0", f"{at + 0x100:04x}:00:00.0"} for at in range(1, 9)], "as Azure pairs them"
    assert "times as fast)" in run.stderr, "judged with the devices that NCCL will find"
    assert "leaves NVLinks to NCCL" in one_line(topodiag("emit", "nccl-topo", GUEST, "--bare", "--repair"))


@pytest.mark.parametrize("as_file", [False, True])
def test_a_guest_gets_the_switches_of_its_host(topodiag, tmp_path, as_file) -> None:
    pairs = PAIRS
    if as_file:
        (tmp_path / "map.csv").write_text(PAIRS.replace(",", "\n").replace("=", ","))
        pairs = str(tmp_path / "map.csv")
    run = topodiag("emit", "nccl-topo", GUEST, "--host-capture", HOST, "--pairs", pairs, "--nodes", "2")
    assert run.returncode == 0, run.stderr
    assert "took the places of 16 devices from the host's capture (as mapped)" in run.stderr
    assert '<net name="mlx5_ib7"' in run.stdout
    assert 'busid="0000:' not in run.stdout, "no bus id of the host is left in the guest's file"


def test_a_guest_s_dump_does_as_well_as_its_bundle(topodiag, tmp_path) -> None:
    bundle = topodiag("emit", "nccl-topo", GUEST, "--instance", "ND96isr_H100_v5", "--nodes", "1").stdout
    (tmp_path / "dump.xml").write_text(topodiag("emit", "nccl-topo", GUEST, "--nodes", "1").stdout)
    dump = topodiag(
        "emit", "nccl-topo", str(tmp_path / "dump.xml"), "--instance", "ND96isr_H100_v5", "--nodes", "1"
    ).stdout
    assert dump.count("<pci ") == bundle.count("<pci ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_the_right_to_write_is_told_before_the_work(topodiag, tmp_path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert "permission denied" in one_line(topodiag("emit", "nccl-topo", HOST, "-o", str(tmp_path / "t.xml")))
