"""Commands that show one thing: env, params, probe, watch, model, bench show."""

import gzip
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests import program
from tests.files import filed
from tests.nccl_tests import table
from tests.tables import examples
from tests.valid import assert_valid
from topodiag.cli.env import FORMATS, env
from topodiag.cli.model.link import link
from topodiag.cli.params import TYPES, link_type
from topodiag.cli.watch import watch
from topodiag.cost.collectives import Link
from topodiag.fleet.collect.archive import START, archive
from topodiag.model.debug_settings import LEVELS, debug_settings
from topodiag.report.debug_settings import WRITERS


def printed(*args):
    done = CliRunner().invoke(env, args)
    assert done.exit_code == 0
    return done.output


def test_a_shell_takes_what_is_printed():
    script = printed("--to", "/a b/it's") + 'printf "%s\\n" "$NCCL_DEBUG_SUBSYS" "$NCCL_DEBUG_FILE"'
    done = subprocess.run(["/bin/sh", "-eu", "-c", script], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.splitlines() == ["INIT,BOOTSTRAP,ENV,NET,GRAPH,TUNING,P2P,SHM,NVLS", "/a b/it's/nccl.%h.%p.log"]


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("level", LEVELS)
def test_every_format_has_every_setting(format_, level):
    out = printed("--format", format_, *([] if level == "recommended" else [f"--{level}"]))
    assert all(setting.name in out and setting.value in out for setting in debug_settings(level))


def test_the_options_name_every_writer():
    assert tuple(WRITERS) == FORMATS


def test_what_nccl_tells_of_itself_is_named_with_what_it_costs():
    table = {setting.name: " ".join(setting.why) for setting in debug_settings("full")}
    assert "one thread" in table["NCCL_RAS_ENABLE"]
    assert "10 ms at each init" in table["NCCL_RUN_RAS_DIAGNOSTICS"]
    assert "bytes of disk" in table["NCCL_PROFILER_PLUGIN"]
    assert "in memory" in table["TORCH_NCCL_TRACE_BUFFER_SIZE"]
    assert "NCCL_PROFILER_PLUGIN" not in printed()


# --- sizes, counts, times, links and placements as people type them


ALL = (*(TYPES[name] for name in ("size", "sizes", "number", "micros", "nics")), link_type())


@examples("kind", "text", "value")
def test_a_value_reads_as_people_write_it(kind: str, text: str, value: float | list[int]) -> None:
    """Sizes have powers of two as in nccl-tests, and MB is one of ten; a range holds both ends."""
    read = TYPES[kind].convert(text, None, None)
    assert (list(read) if isinstance(value, list) else read) == value


@pytest.mark.parametrize("text", ["", "-1", "5h", "s", "1e9", "nan", "61m", "٥s", "9" * 500])
def test_other_durations_are_usage_errors(text: str) -> None:
    with pytest.raises(click.BadParameter):
        TYPES["duration"].convert(text, None, None)


def test_a_link_with_and_without_a_name() -> None:
    assert link_type().convert("InfiniBand NDR=3.0,50", None, None) == Link(3.0, 50.0, "InfiniBand NDR")
    assert link_type("inside").convert("1,300", None, None) == Link(1.0, 300.0, "inside")


def test_the_shell_completes_the_names_of_systems() -> None:
    option = next(param for param in link.params if param.name == "system")
    found = [item.value for item in option.shell_complete(click.Context(link), "DGX-h")]
    assert found == ["dgx-h100", "dgx-h200"]


@given(
    st.sampled_from(ALL),
    st.one_of(st.text(max_size=30), st.from_regex(r"[0-9.eE+xKMGTiB:,=mus]{1,20}", fullmatch=True)),
)
def test_any_text_is_a_value_or_a_usage_error(kind: click.ParamType, text: str) -> None:
    with suppress(click.BadParameter):
        assert kind.convert(text, None, None) is not None


# --- `topodiag probe`: the collector as one file, the same bytes as from a checkout


ROOT = Path(__file__).parents[2]


def test_standard_output_file_and_checkout_have_the_same_bytes(tmp_path):
    made, built = tmp_path / "a.pyz", tmp_path / "b.pyz"
    assert program.run("probe", "-o", made).returncode == 0
    subprocess.run([sys.executable, ROOT / "tools/build_probe.py", built], check=True, capture_output=True, timeout=60)
    printed = program.run("probe", text=False)
    assert printed.returncode == 0
    assert printed.stdout == made.read_bytes() == built.read_bytes() == archive()


def test_the_file_runs_alone(tmp_path):
    made = tmp_path / "probe.pyz"
    assert program.run("probe", "-o", made).returncode == 0
    bare = {"PATH": os.environ["PATH"]}
    done = subprocess.run([made, "--version"], env=bare, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("topodiag-probe ")


def test_a_terminal_gets_one_line_and_no_binary():
    ours, theirs = pty.openpty()
    done = subprocess.run([*program.ARGV, "probe"], stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert b"-o topodiag-probe.pyz" in done.stderr


def test_an_old_python_is_told_in_one_line_what_to_do(monkeypatch):
    """The first lines compile under any Python: no annotation, no f-string, and the check before the first import."""
    monkeypatch.setattr("sys.version_info", (2, 7, 5))
    with pytest.raises(SystemExit) as ended:
        exec(START, {"__name__": "__main__"})
    assert "needs Python 3.6 or later, and this is 2.7" in str(ended.value)
    assert "python3.8 topodiag-probe.pyz" in str(ended.value)


# --- `topodiag watch`: what it takes, and what it leaves


def test_a_watch_of_two_samples_leaves_a_file_and_an_exposition(tmp_path: Path) -> None:
    arguments = [str(tmp_path), "--textfile", str(tmp_path / "a.prom"), "--times", "2", "--every", "100ms", "-q"]
    done = CliRunner().invoke(watch, arguments)
    assert (done.exit_code, done.output) == (0, "")
    (journal,) = tmp_path.glob("*.watch.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert lines[0]["watch"] == 1
    assert lines[-1]["end"] == "the number of samples"
    assert "topodiag_watch_timestamp_seconds" in (tmp_path / "a.prom").read_text()


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
