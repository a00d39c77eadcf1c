"""What `topodiag bench PATH...` prints, takes and refuses, as a program."""

# ruff: noqa: E501 - rows as wide as nccl-tests prints them

from __future__ import annotations

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
from tests.shown import ROOT, assert_printed, shown_on
from tests.tables import examples
from tests.valid import assert_valid
from topodiag.cli.bench.judge import judge

SCHEMA = json.loads((files("topodiag.report") / "schema" / "result-1.0.schema.json").read_text())

PAGE = ROOT / "docs" / "bench.md"


def run(*args: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return program.run("bench", *args, **kwargs)


def table(alpha: float = 20.0, beta: float = 230.0, ranks: int = 8, hosts: int = 1, wrong: int = 0) -> str:
    lines = [
        "# nccl-tests version 2.17.8 nccl-headers=22809 nccl-library=22809",
        "# Collective test starting: all_reduce_perf",
        "# nThread 1 nGpus 1 minBytes 1024 maxBytes 8589934592 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0",
        "#\n# Using devices",
    ]
    for rank in range(ranks):
        host, local = divmod(rank, ranks // hosts)
        lines.append(
            f"#  Rank {rank:2d} Group  0 Pid {100 + rank:6d} on gpu-{host} device {local:2d} [0000:{0x18 + local:02x}:00] NVIDIA H100 80GB HBM3"
        )
    lines.append(
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong"
    )
    for step in range(10, 34):
        size = 1 << step
        time = alpha + size / beta / 1e3
        block = f"{time:9.2f} {size / time / 1e3:8.2f} {size / time / 1e3 * 2 * (ranks - 1) / ranks:8.2f} {wrong:7d} "
        lines.append(f"{size:12d} {size // 4:12d}     float     sum      -1 {block}{block}")
    lines += [f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}", "# Avg bus bandwidth    : 123.4", "#"]
    return "\n".join(lines) + "\n"


@pytest.fixture
def out(tmp_path: Path) -> str:
    place = tmp_path / "all_reduce.log"
    place.write_text(table())
    return str(place)


def test_a_path_in_place_of_a_command_is_read(out: str) -> None:
    done = run(out, "-v", "--fail-on", "never")
    assert (done.returncode, done.stderr) == (0, "")
    assert "all_reduce  8 ranks on gpu-0" in done.stdout
    assert "8 × NVIDIA H100 80GB HBM3" in done.stdout
    assert "20 us + size / 230 GB/s" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_options_may_stand_before_the_path(out: str) -> None:
    assert run("--fail-on", "never", out).stdout == run(out, "--fail-on", "never").stdout


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


def test_nics_alone_are_something_to_measure_against(tmp_path: Path) -> None:
    place = tmp_path / "unnamed.log"
    place.write_text(table(beta=90, ranks=16, hosts=2).replace("NVIDIA H100 80GB HBM3", "Odd GPU"))
    assert "--nics" in run(str(place)).stdout
    done = run(str(place), "--nics", "4x200", "--explain")
    assert "expected for nodes with 4 x 200 Gb/s, whose links" in done.stdout
    assert "a ring's bus" in done.stdout
    (made,) = json.loads(run(str(place), "--nics", "4x200", "--format", "json").stdout)["facts"]["benchmarks"]
    assert (made["verdict"], made["expected"]["confidence"]) == ("normal", "low")
    assert ["NICs of a node", "100 GB/s"] in [[term["name"], term["value"]] for term in made["expected"]["terms"]]


def test_an_amd_machine_is_known_by_its_name(tmp_path: Path) -> None:
    place = tmp_path / "rccl.log"
    place.write_text(table(beta=190, ranks=16, hosts=2).replace("NVIDIA H100 80GB HBM3", ""))
    done = run(str(place), "--system", "bm.gpu.mi300x.8")
    assert "expected for BM.GPU.MI300X.8, whose links carry up to 448 GB/s [medium confidence]" in " ".join(
        done.stdout.split()
    )


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


def test_the_curves_are_drawn_into_a_file(out: str, tmp_path: Path) -> None:
    picture = tmp_path / "x.svg"
    done = run(out, "--svg", str(picture), "--fail-on", "never")
    assert done.returncode == 0
    assert picture.read_text().startswith("<svg")


def test_ascii_output_is_ascii(out: str) -> None:
    assert run(out, "--ascii", "--fail-on", "never").stdout.isascii()


@examples("args", "said")
def test_what_it_cannot_take_is_refused_in_one_line(args: tuple[str, ...], said: str, out: str) -> None:
    done = run(*(out if arg == "X" else arg for arg in args))
    assert said in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    if args:
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) <= 2


@examples("content", "said")
def test_a_file_of_something_else_is_named_for_what_it_is(content: str, said: str, tmp_path: Path) -> None:
    place = tmp_path / "x.log"
    place.write_text(content)
    done = run(str(place))
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_a_mistyped_command_gets_its_near_names() -> None:
    done = run("plna")
    assert done.returncode == 2
    assert "Did you mean plan" in done.stderr


def test_every_option_is_in_its_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "bench.md").read_text()
    assert [param.opts for param in judge.params if not any(f"`{option}" in page for option in param.opts if "-" in option)
            and param.opts != ["paths"]] == []  # fmt: skip


@pytest.mark.parametrize(("command", "output"), [pair for pair in shown_on(PAGE) if "fixture:" in pair[0]])
def test_what_the_page_shows_is_what_the_program_prints(command: str, output: str) -> None:
    assert_printed(command, output)
