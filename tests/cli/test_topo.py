"""`topodiag topo`: what each command prints, its exit codes, its formats, as users run it."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests import program
from tests.nccl.small_trees import GEN4, GEN5
from tests.nccl.topo.test_infer_instance import NDV5, cloud
from tests.shown import ROOT
from tests.tables import examples
from topodiag.emit.nccl_xml import to_text
from topodiag.model.nccl_versions import spell_range

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "topo"
HEALTHY = str(FOLDER / "dgx-h100-healthy" / "topo.xml")
SICK = str(FOLDER / "gpu-without-nvlink" / "topo.xml")
FEWER = str(FOLDER / "gpu-12-of-18-nvlinks" / "topo.xml")


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


@examples("command", "code", "quiet", "out", "folded", "without")
def test_a_command_answers(
    command: str,
    *,
    code: int | None,
    quiet: bool | None,
    out: list[str] | None,
    folded: list[str] | None,
    without: list[str] | None,
) -> None:
    done = program.run(*shlex.split(command), cwd=ROOT)
    assert code is None or done.returncode == code
    assert not quiet or done.stderr == ""
    assert [words for words in out or () if words not in done.stdout] == []
    assert [words for words in folded or () if words not in " ".join(done.stdout.split())] == []
    assert [words for words in without or () if words in done.stdout] == []


def test_all_versions_that_load_a_file_are_named() -> None:
    assert f"NCCL {spell_range()} load it" in topo("check", HEALTHY).stdout


def test_a_file_is_held_against_a_log():
    log = str(FOLDER.parent / "jobs" / "healthy" / "logs")
    done = topo("check", HEALTHY, "--against", log, "--nccl", "2.28")
    assert done.returncode in {0, 1}
    assert "TOP002" in done.stdout


def test_the_check_as_json_is_the_result_of_every_other_command():
    result = json.loads(topo("check", SICK, "--format", "json").stdout)
    assert result["schema_version"].startswith("1.")
    assert {"TOP004", "TOP001"} == {finding["id"] for finding in result["findings"]}


def test_settings_change_the_prediction():
    done = topo("predict", HEALTHY, "--env", "NCCL_P2P_DISABLE=1", "--env", "NCCL_NVLS_ENABLE=0", "--format", "json")
    assert json.loads(done.stdout)["paths"]["GPU/0-1b000"]["GPU/0-43000"][2] != "NVL"


def test_what_if_quiet_is_the_sentence_alone():
    done = topo("what-if", HEALTHY, "--down", "nvlink:GPU3:6", "-q", "--width", "400")
    assert done.stdout.startswith("With 6 NVLinks of GPU3 down")
    assert len(done.stdout.splitlines()) == 1


def test_what_if_as_json_holds_both_predictions():
    document = json.loads(topo("what-if", HEALTHY, "--remove", "GPU3", "--size", "64M", "--format", "json").stdout)
    assert (document["before"]["ranks"], document["after"]["ranks"], document["bytes"]) == (8, 7, 64 << 20)
    assert document["changes"] == ["GPU3 removed"]
    assert document["sentence"].startswith("With GPU3 removed")


def test_diff_of_equal_machines_exits_0_whatever_differs_by_nature(tmp_path):
    other = tmp_path / "other.xml"
    other.write_text(Path(HEALTHY).read_text().replace('guid="0x', 'guid="0x1'))
    done = topo("diff", HEALTHY, str(other))
    assert done.returncode == 0
    assert "no difference that matters to communication, in what was compared" in done.stdout
    assert "left and right do not say how links trained" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("right", "code", "gap"), [("fixture:dgx-h100-healthy", 0, False), (HEALTHY, 1, True), (SICK, 1, True)]
)
def test_diff_says_where_it_does_not_know_how_links_trained(right, code, gap):
    done = topo("diff", "fixture:dgx-h100-healthy", right)
    assert (done.returncode, "trained lanes" in done.stdout) == (code, False)
    assert ("not compared  trained PCIe links: right does not say" in done.stdout) == gap


def test_diff_as_json_lists_each_difference():
    document = json.loads(topo("diff", HEALTHY, FEWER, "--format", "json").stdout)
    assert document["differences"] == [{"device": "GPU3", "what": "NVLinks to NVSwitch", "left": "18", "right": "12"}]
    assert set(document["graphs"]) >= {"ring", "tree", "NVLS"}


def test_standard_input_is_a_file_like_any_other():
    with open(HEALTHY) as file:
        done = topo("check", "-", stdin=file)
    assert done.returncode == 0
    assert "no faults found" in done.stdout


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize(
    "args",
    [
        ("check", SICK), ("predict", HEALTHY, "--nodes", "2", "--explain"), ("show", HEALTHY),
        ("diff", HEALTHY, FEWER),
    ],
    ids=lambda args: args[0],
)  # fmt: skip
def test_no_line_is_wider_than_the_page(args, width):
    done = topo(*args, "--width", str(width))
    assert done.stdout
    assert max(cell_len(line) for line in done.stdout.splitlines()) <= width


@pytest.mark.parametrize("width", ["40", "80", "160"])
def test_no_line_of_what_if_is_wider_than_the_page(width):
    done = topo("what-if", HEALTHY, "--down", "nvlink:GPU3:6", "--remove", "nic:mlx5_4", "--width", width)
    assert max(cell_len(line) for line in done.stdout.splitlines()) <= int(width)


@pytest.mark.parametrize(
    "args",
    [
        ("check", SICK), ("predict", HEALTHY, "--nodes", "2"), ("show", HEALTHY), ("diff", HEALTHY, FEWER),
        ("what-if", HEALTHY, "--down", "nvlink:GPU3:6"),
    ],
    ids=lambda args: args[0],
)  # fmt: skip
def test_ascii_is_ascii(args):
    done = topo(*args, "--ascii")
    assert done.stdout.isascii(), [c for c in done.stdout if not c.isascii()]


def test_output_goes_to_a_file(tmp_path):
    done = topo("predict", HEALTHY, "--format", "json", "--output", str(tmp_path / "made.json"))
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads((tmp_path / "made.json").read_text())["accepted"] is True


@pytest.mark.parametrize("command", ["check", "predict", "show"])
def test_a_reader_that_goes_away_is_no_error(command):
    argv = [sys.executable, "-m", "topodiag", "topo", command, HEALTHY]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        data = child.stderr.read()
        code = child.wait(timeout=120)
    assert (code, data) == (0, b"")


@examples("command", "words")
def test_what_cannot_be_meant_is_told_in_one_line(command: str, words: str) -> None:
    refused(topo(*shlex.split(command), cwd=ROOT), words)


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
