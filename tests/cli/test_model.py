"""Models and measured runs: model, bench show."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests import program
from tests.files import filed
from tests.nccl_tests import table
from tests.valid import assert_valid

Run = Callable[..., "subprocess.CompletedProcess[str]"]


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


def test_a_captured_machine_stands_for_its_like_and_its_faults_cost(model: Run) -> None:
    healthy, sick = (
        loaded(model("collective", "--machine", f"fixture:{name}", "--placement", "4x8", "--format", "json"))
        for name in ("dgx-h100-healthy", "dgx-h100-nic-down-and-half-rate")
    )
    assert sick["time_us"] > healthy["time_us"]
    tier = next(tier for tier in healthy["inputs"]["system"]["tiers"] if tier["kind"] == "network")
    assert tier["gbs"] == 48.0


def test_a_closed_pipe_is_quiet() -> None:
    head = f"{sys.executable} -m topodiag model hierarchy | head -1"
    done = subprocess.run(["sh", "-c", head], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""


# --- what `topodiag bench PATH...` prints, takes and refuses, as a program


SCHEMA = json.loads((files("topodiag.report") / "schema" / "diagnose-2.0.schema.json").read_text())


def run(*args: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return program.run("bench", *args, **kwargs)


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(filed(tmp_path, "all_reduce.log", table()))


def test_standard_input_and_packed_files_are_read(out: str, tmp_path: Path) -> None:
    text = Path(out).read_text()
    assert "all_reduce  8 ranks" in run("-", "--fail-on", "never", input=text).stdout
    packed = filed(tmp_path, "x.gz", gzip.compress(text.encode()))
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
