"""`topodiag topo`: what each command prints, its exit codes, its formats, as users run it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import program
from tests.nccl.small_trees import GEN4, GEN5
from tests.nccl.topo.test_infer_instance import NDV5, cloud
from topodiag.emit.nccl_xml import to_text
from topodiag.model.nccl_versions import spell_range

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "topo"
HEALTHY = str(FOLDER / "dgx-h100-healthy" / "topo.xml")
SICK = str(FOLDER / "gpu-without-nvlink" / "topo.xml")


def topo(*args, **kwargs):
    return program.run("topo", *args, **kwargs)


def refused(done, *words):
    assert done.returncode == 2, done.stdout
    assert not done.stdout
    said = done.stderr.splitlines()
    assert said[0].startswith("topodiag: error: ")
    assert len(said) <= 2
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_all_versions_that_load_a_file_are_named() -> None:
    assert f"NCCL {spell_range()} load it" in topo("check", HEALTHY).stdout


def test_diff_of_equal_machines_exits_0_whatever_differs_by_nature(tmp_path):
    other = tmp_path / "other.xml"
    other.write_text(Path(HEALTHY).read_text().replace('guid="0x', 'guid="0x1'))
    done = topo("diff", HEALTHY, str(other))
    assert done.returncode == 0
    assert "no difference that matters to communication, in what was compared" in done.stdout
    assert "left and right do not say how links trained" in " ".join(done.stdout.split())


def test_standard_input_is_a_file_like_any_other():
    with open(HEALTHY) as file:
        done = topo("check", "-", stdin=file)
    assert done.returncode == 0
    assert "no faults found" in done.stdout


@pytest.mark.parametrize("command", ["check", "predict", "show"])
def test_a_reader_that_goes_away_is_no_error(command):
    argv = [sys.executable, "-m", "topodiag", "topo", command, HEALTHY]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.close()
        data = child.stderr.read()
        code = child.wait(timeout=120)
    assert (code, data) == (0, b"")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<system version="1"><cpu numaid="0">' + "<pci>" * 10_000, "nests deeper"),
        ('<?xml version="1.0"?><!DOCTYPE system [<!ENTITY a "b">]><system version="1"><cpu numaid="0"/></system>', ""),
        ('<system version="1"><cpu numaid="' + "x" * (9 << 20) + '"/></system>', "larger than 8 MiB"),
        ("<html><body>404</body></html>", "unknown file type"),
        ("", "is empty"),
    ],
    ids=["deep", "entities", "large", "html", "empty"],
)
def test_hostile_and_foreign_files_are_refused(tmp_path, text, words):
    (tmp_path / "topo.xml").write_text(text)
    refused(topo("check", str(tmp_path / "topo.xml")), words)


def test_azures_file_without_gpus_is_predicted_and_one_of_nobody_asks_for_the_machine(tmp_path):
    (tmp_path / "ndv5.xml").write_text(to_text(cloud(NDV5, GEN5)))
    text = " ".join(topo("predict", str(tmp_path / "ndv5.xml"), "--nodes", "2").stdout.split())
    assert "those of ND96isr_H100_v5: H100 80GB HBM3" in text
    assert "not followed: symmetric kernels" in text
    (tmp_path / "other.xml").write_text(to_text(cloud(NDV5, GEN4)))
    refused(topo("predict", str(tmp_path / "other.xml")), "--system")
