"""`topodiag model` as users run it: the figures that it prints, its JSON, its pictures, its refusals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import program
from tests.tables import examples

Run = Callable[..., "subprocess.CompletedProcess[str]"]
LINKS = ("--inside", "1.0,300", "--outside", "5.0,12.5")


@pytest.fixture
def model() -> Run:
    """The real program."""

    def run(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return program.run("model", *args, env={"COLUMNS": "100", **env})

    return run


def loaded(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert {"inputs", "terms", "time_us", "algbw_gbs", "busbw_gbs"} <= set(document)
    assert all(set(term) == {"name", "value", "unit", "formula"} for term in document["terms"])
    assert isinstance(document, dict)
    return document


def row(text: str, name: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.strip().startswith(name))
    return re.split(r"\s{2,}", line.strip())


def test_one_buffer_over_the_tiers_of_the_worked_example(model: Run) -> None:
    tiers = {"NVLink": "1.0,300", "PCIe": "2.0,25", "InfiniBand NDR": "3.0,50", "Ethernet 25G": "30.0,3.1"}
    done = model("link", *(word for name, link in tiers.items() for word in ("--link", f"{name}={link}")))
    assert done.returncode == 0, done.stderr
    table = {name: row(done.stdout, name)[3:5] for name in tiers}
    assert table == {
        "NVLink": ["0.90 ms", "1.0×"],
        "PCIe": ["10.74 ms", "12.0×"],
        "InfiniBand NDR": ["5.37 ms", "6.0×"],
        "Ethernet 25G": ["86.62 ms", "96.7×"],
    }


def test_a_collective_under_two_placements_and_a_measured_time_read_against_them(model: Run) -> None:
    done = model("collective", "all_reduce", *LINKS, "--measured", "150ms")
    assert done.returncode == 0, done.stderr
    assert row(done.stdout, "8 on 1 node ")[3] == "6.28 ms"
    assert row(done.stdout, "8 on 8 nodes")[3] == "150.39 ms"
    assert "24.0× faster" in done.stdout
    assert "scattered over the network" in done.stdout
    assert "rank-to-node map" in done.stdout
    assert "pack the ranks" in done.stdout


def test_flat_against_hierarchical_and_where_each_regime_ends(model: Run) -> None:
    done = model("hierarchy", *LINKS, "--nodes", "4")
    assert done.returncode == 0, done.stderr
    assert row(done.stdout, "flat ring")[:2] == ["flat ring", "166.74 ms"]
    assert row(done.stdout, "leaders")[:3] == ["leaders", "138.74 ms", "1.20×"]
    assert "where latency limits" in done.stdout
    assert "where bandwidth limits" in done.stdout
    document = loaded(model("hierarchy", *LINKS, "--nodes", "4", "--format", "json"))
    assert [size["bytes"] for size in document["ways"][0]["sizes"]] == [4 << power for power in range(16, 29)]


def test_a_step_names_the_tier_of_each_dimension_and_the_worst_misplacement(model: Run) -> None:
    document = loaded(
        model("step", "--pp", "2", "--dp", "4", "--system", "dgx-h100", "--nodes", "8", "--format", "json")
    )
    assert {dimension["dimension"]: dimension["tier"] for dimension in document["dimensions"]} == {
        "tp": "NVLink", "pp": "network", "dp": "network",
    }  # fmt: skip
    assert document["misplacements"][0]["dimension"] == "tp"
    assert document["misplacements"][0]["cost"] > 0.1
    waited = sum(dimension["exposed_us"] for dimension in document["dimensions"])
    assert document["time_us"] == pytest.approx(document["compute_us"] + document["bubble_us"] + waited)
    assert document["inputs"]["assumed"]


def test_a_step_fits_a_screen_and_v_has_all_that_is_assumed(model: Run) -> None:
    step = ("step", "--pp", "2", "--dp", "4", "--width", "80")
    lines, whole = model(*step).stdout.splitlines(), model(*step, "-v").stdout
    assert len(lines) <= 24
    assert "more lines (-v)" in "\n".join(lines)
    assumed = loaded(model(*step[:-2], "--format", "json"))["inputs"]["assumed"]
    assert whole.count("assumed: ") >= len(assumed) > 1


def test_it_says_so_where_topology_hardly_matters(model: Run) -> None:
    done = model("step", "--nodes", "1")
    assert "topology hardly matters here" in done.stdout
    assert "worst misplacement" not in done.stdout


def test_a_job_whose_tensor_groups_lie_across_nodes_is_told_the_better_order(model: Run) -> None:
    done = model("step", "--nodes", "2", "--order", "dp-tp")
    assert "placed badly" in done.stdout
    assert "--order tp-dp-cp-pp" in done.stdout
    assert "hardly matters" not in done.stdout


def test_a_captured_machine_stands_for_its_like_and_its_faults_cost(model: Run) -> None:
    healthy, sick = (
        loaded(model("collective", "--machine", f"fixture:{name}", "--placement", "4x8", "--format", "json"))
        for name in ("dgx-h100-healthy", "dgx-h100-nic-down-and-half-rate")
    )
    assert sick["time_us"] > healthy["time_us"]
    tier = next(tier for tier in healthy["inputs"]["system"]["tiers"] if tier["kind"] == "network")
    assert tier["gbs"] == 48.0


@pytest.mark.parametrize("width", ["80", "160"])
@pytest.mark.parametrize(
    "args",
    [("link",), ("collective", "--explain", "--measured", "1s"), ("hierarchy", "--explain"), ("step", "--explain")],
)
def test_no_line_is_wider_than_asked_and_ascii_is_ascii(model: Run, args: tuple[str, ...], width: str) -> None:
    done = model(*args, "--width", width, "--ascii")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= int(width)
    assert done.stdout.isascii()


@pytest.mark.parametrize("command", ["link", "collective", "hierarchy", "step"])
def test_plots_are_written_as_svg(model: Run, command: str, tmp_path: Path) -> None:
    done = model(command, "--svg", str(tmp_path / "plot.svg"), "--quiet")
    assert done.returncode == 0, done.stderr
    assert ET.parse(tmp_path / "plot.svg").getroot().tag.endswith("svg")


@examples("args", "said")
def test_a_question_that_cannot_be_answered_says_why_and_exits_2(model: Run, args: tuple[str, ...], said: str) -> None:
    done = model(*args)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_a_closed_pipe_is_quiet() -> None:
    head = f"{sys.executable} -m topodiag model hierarchy | head -1"
    done = subprocess.run(["sh", "-c", head], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
