"""What `topodiag bench PATH...` prints, takes and refuses, as a program."""

# ruff: noqa: E501 - rows as wide as nccl-tests prints them

import csv
import gzip
import io
import json
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests import program
from tests.cli.given import table
from tests.shown import ROOT, assert_printed, shown_on
from tests.valid import assert_valid
from topodiag.cli.bench.judge import judge

SCHEMA = json.loads((files("topodiag.report") / "schema" / "result-1.0.schema.json").read_text())

PAGE = ROOT / "docs" / "bench.md"


def run(*args: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return program.run("bench", *args, **kwargs)


@pytest.fixture
def out(tmp_path: Path) -> str:
    place = tmp_path / "all_reduce.log"
    place.write_text(table())
    return str(place)


def test_standard_input_and_packed_files_are_read(out: str, tmp_path: Path) -> None:
    text = Path(out).read_text()
    assert "all_reduce  8 ranks" in run("-", "--fail-on", "never", input=text).stdout
    packed = tmp_path / "x.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert "all_reduce  8 ranks" in run(str(packed), "--fail-on", "never").stdout
    with packed.open("rb") as stream:
        assert "all_reduce  8 ranks" in run("-", "--fail-on", "never", stdin=stream).stdout


def test_the_json_is_of_the_published_schema(out: str) -> None:
    document = json.loads(run(out, "--format", "json", "--fail-on", "never").stdout)
    assert_valid(document, SCHEMA)
    (made,) = document["facts"]["benchmarks"]
    assert (made["collective"], made["nranks"], len(made["rows"])) == ("all_reduce", 8, 24)
    assert made["rows"][-1]["bytes"] == 1 << 33
    assert made["fit"]["alpha_us"] == pytest.approx(20, rel=0.01)
    assert made["fit"]["beta_gbs"] == pytest.approx(230, rel=0.01)
    assert document["inputs"][0]["kind"] == "nccl-tests"
    assert document["inputs"][0]["unparsed"] == 0


def test_the_rows_are_written_as_csv(out: str) -> None:
    rows = list(csv.DictReader(io.StringIO(run(out, "--csv", "rows", "--fail-on", "never").stdout)))
    assert len(rows) == 24
    assert (rows[0]["bytes"], rows[0]["collective"], rows[0]["nranks"]) == ("1024", "all_reduce", "8")


def test_a_low_run_fits_a_screen_and_says_its_cost_once(tmp_path: Path) -> None:
    place = tmp_path / "slow.log"
    place.write_text(table(beta=60))
    args = (str(place), "--system", "dgx-h100", "--fail-on", "never", "--width", "80")
    out, whole = run(*args).stdout, run(*args, "-v").stdout
    assert len(out.splitlines()) <= 24
    assert str(tmp_path) not in out
    assert out.splitlines()[2].startswith("  do ") or out.splitlines()[3].startswith("  do ")
    assert out.count("BEN001") == 1
    assert "▲ BEN001" in whole or "✖ BEN001" in whole


def test_a_folder_of_many_runs_is_one_line_each(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"run{number}.log").write_text(table(beta=200 + number))
    (tmp_path / "notes.txt").write_text("nothing of interest\n")
    done = run(str(tmp_path), "--fail-on", "never", "--width", "160")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("5 runs")
    assert (
        sum(line.rstrip().endswith(f" run{number}.log:1") for line in lines if "·" not in line for number in range(5))
        == 5
    )
    assert "holds no table of nccl-tests" in done.stdout
    assert max(map(len, lines)) <= 160


def test_every_option_is_in_its_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "bench.md").read_text()
    assert [param.opts for param in judge.params if not any(f"`{option}" in page for option in param.opts if "-" in option)
            and param.opts != ["paths"]] == []  # fmt: skip


@pytest.mark.parametrize(("command", "output"), [pair for pair in shown_on(PAGE) if "fixture:" in pair[0]])
def test_what_the_page_shows_is_what_the_program_prints(command: str, output: str) -> None:
    assert_printed(command, output)
