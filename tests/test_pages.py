"""The pages of docs/ show what the program prints, and name every option of the commands that they are of."""

import doctest
import json
import re
from dataclasses import dataclass
from importlib import import_module

import click
import pytest

from benchmarks.sweep_fabric import fabric_of
from tests import program
from tests.shown import ROOT, assert_printed, shown_on
from topodiag.cli.model.step_options import TRAINED
from topodiag.model.sweep import State as SweepState
from topodiag.model.verdict import CauseStatus, State
from topodiag.sweep.plan import KINDS, first_round
from topodiag.sweep.planfile import plan_json

OF_REPORTS = {
    "--format", "--output", "--color", "--ascii", "--quiet", "--verbose", "--width", "--html", "--redact", "--help",
    "--fail-on",
}  # fmt: skip
"""Options that all reports have: they stand on the page of the user's guide."""


@dataclass(frozen=True)
class Page:
    """A page: the words of the commands that it shows, in order where it is a list; the commands whose options it
    names, but for `elsewhere`, as `MODULE:NAME` in topodiag.cli; how many examples for Python users it has."""

    name: str
    shows: set[str] | list[str] | None = None
    commands: tuple[str, ...] = ()
    elsewhere: frozenset[str] | set[str] = frozenset()
    examples: int = 0

    def text(self) -> str:
        return (ROOT / "docs" / self.name).read_text(encoding="utf-8")


PAGES = (
    Page("topo.md", {"check", "predict", "what-if", "diff"},
         ("topo:check", "topo:predict", "topo:what_if", "topo:diff", "topo:show"), examples=3),
    Page("model.md", {"link", "collective", "hierarchy", "step"},
         tuple(f"model.questions:{name}" for name in ("collective", "hierarchy", "link", "step")), examples=6),
    Page("place.md", ["audit", "audit", "solve", "solve"], ("place.maps:audit",), OF_REPORTS, examples=9),
    Page("sweeps.md", None, ("bench.sweep:plan", "bench.sweep:run", "bench.sweep:read"), OF_REPORTS),
    Page("user-guide.md", None, ("scan:scan",)),
    Page("diagnose.md"),
    Page("bench.md", None, ("bench.judge:judge",)),
)  # fmt: skip
SHOWN = [(f"{page.name}: {command[:60]}", command, output)
         for page in PAGES if page.shows is not None or page.name in {"bench.md", "diagnose.md"}
         for command, output in shown_on(ROOT / "docs" / page.name)
         if page.name != "bench.md" or "fixture:" in command]  # fmt: skip


@pytest.mark.parametrize("page", [page for page in PAGES if page.shows], ids=lambda page: page.name)
def test_a_page_shows_its_commands(page: Page) -> None:
    words = [command.split()[1] for command, _ in shown_on(ROOT / "docs" / page.name)]
    assert (words if isinstance(page.shows, list) else set(words)) == page.shows


@pytest.mark.parametrize(("command", "output"), [row[1:] for row in SHOWN], ids=[row[0] for row in SHOWN])
def test_what_a_page_shows_is_what_the_program_prints(command: str, output: str) -> None:
    assert_printed(command, output)


@pytest.mark.parametrize(
    ("page", "place"),
    [pytest.param(page, place, id=f"{page.name}: {place}") for page in PAGES for place in page.commands],
)
def test_every_option_is_on_its_page(page: Page, place: str) -> None:
    module, _, name = place.partition(":")
    command: click.Command = getattr(import_module(f"topodiag.cli.{module}"), name)
    options = [param.opts for param in command.params if param.opts[0].startswith("-")]
    missing = [opts for opts in options if not any(f"`{option}" in page.text() for option in opts)]
    assert [opts for opts in missing if not page.elsewhere & set(opts)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.examples], ids=lambda page: page.name)
def test_the_examples_of_a_page_for_python_users_work(page: Page) -> None:
    result = doctest.testfile(str(ROOT / "docs" / page.name), module_relative=False)
    assert (result.failed, result.attempted) == (0, page.examples)


@pytest.mark.parametrize(("module", "count"), [("diagnose", 3), ("case.topology", 3), ("model", 4)])
def test_the_examples_of_a_module_work(module: str, count: int) -> None:
    result = doctest.testmod(import_module(f"topodiag.app.{module}"))
    assert (result.failed, result.attempted) == (0, count)


def test_options_of_training_are_those_of_model_step() -> None:
    priced = {name for param in TRAINED for name in param.opts}
    assert {"--params", "--layers", "--chunks", "--zero", "--overlap", "--peak-tflops"} <= priced
    assert not priced & {"--nodes", "--tp", "--cp", "--ep", "--pp", "--dp", "--order"}


# --- docs/diagnose.md -----------------------------------------------------------------------------------------

DIAGNOSE = (ROOT / "docs" / "diagnose.md").read_text(encoding="utf-8")


def test_the_page_of_diagnose_shows_faults_and_a_healthy_machine() -> None:
    outputs = [output.split()[1] for _, output in shown_on(ROOT / "docs" / "diagnose.md")]
    assert outputs == ["FAILED", "SLOW", "HEALTHY"]


def test_every_state_and_status_is_explained() -> None:
    words = [state.value.replace("_", " ") for state in State]
    words += [status.value for status in CauseStatus if status is not CauseStatus.UNKNOWN]
    assert [word for word in words if f"| {word} |" not in DIAGNOSE] == []


def test_every_label_of_the_verdict_is_explained() -> None:
    drawn = "".join(path.read_text() for path in (ROOT / "topodiag" / "report" / "verdict").glob("*.py"))
    labels = set(re.findall(r'(?:page\.entry\((?:"" if number else )?|_draw_lines\(page, |label = )"([a-z ]+)"', drawn))
    assert labels >= {"do", "cost", "verdict", "where", "evidence", "next", "ruled out", "read"}
    assert sorted(label for label in labels if f"`{label}`" not in DIAGNOSE) == []


# --- docs/sweeps.md -------------------------------------------------------------------------------------------

SWEEPS = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")


def test_every_kind_of_run_and_every_state_of_a_sweep_is_named() -> None:
    assert [
        word for word in (*KINDS, "gpus", *(state.value for state in SweepState)) if f"`{word}`" not in SWEEPS
    ] == []


def test_the_plan_that_is_shown_has_the_fields_of_a_plan() -> None:
    shown = json.loads(re.findall(r"```json\n(.*?)```", SWEEPS, re.DOTALL)[0])
    document = json.loads(json.dumps(plan_json(first_round(fabric_of()))))
    assert shown.keys() == document.keys()
    for name in ("fabric", "launch"):
        assert shown[name].keys() == document[name].keys()
    assert shown["runs"][0].keys() == document["runs"][0].keys()


def test_the_first_round_that_is_shown_is_what_is_planned(tmp_path) -> None:
    racks = "".join(f"gpu[{8 * rack + 1:03d}-{8 * rack + 8:03d}],r{rack}\n" for rack in range(8))
    (tmp_path / "racks.csv").write_text(racks)
    shape = ("--nodelist", "gpu[001-064]", "--rail-nics", "mlx5_[0-7]", "--topology", str(tmp_path / "racks.csv"))
    done = program.run("bench", "plan", *shape, "-o", "plan.json", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr in SWEEPS
