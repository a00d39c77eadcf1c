"""What the documentation shows is what the program does, and its pages name every option of their commands."""

import doctest
import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from benchmarks.sweep_fabric import fabric_of
from tests import program
from tests.shown import ROOT, assert_printed, shown_on
from tools import build_api_docs, build_collector_docs, build_docs
from topodiag.checks import registry
from topodiag.cli import cli
from topodiag.cli.model.step_options import TRAINED
from topodiag.model.verdict import CauseStatus, State
from topodiag.sweep.plan import KINDS, first_round
from topodiag.sweep.planfile import plan_json
from topodiag.sweep.values import State as SweepState
from topodiag_probes.registry import probes
from topodiag_probes.variables import FAMILIES, FORMS

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"(?<!\\)\[[^\]\n]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as forges spell them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(CODE.sub("", page.read_text())):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def test_the_pages_of_the_checks_are_what_their_docstrings_say() -> None:
    assert build_docs.stale(build_docs.check_pages(), ROOT / "docs" / "checks") == [], "run python tools/build_docs.py"


def test_every_check_has_its_place_on_the_page_of_its_family() -> None:
    pages = build_docs.check_pages()
    for check_id in registry.ids():
        assert f"\n## {check_id}\n" in pages[f"{check_id[:3]}.md"]
        assert f"({check_id[:3]}.md#{check_id.lower()})" in pages["README.md"]


def commands_of(group: click.Group, before: str = "") -> Iterator[str]:
    """Every command that does something, as it is typed after `topodiag`."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def test_the_changelog_has_one_line_for_each_command() -> None:
    offered = (ROOT / "CHANGELOG.md").read_text().partition("### Commands")[2].partition("\n### ")[0]
    lines = [line for line in offered.splitlines() if line.startswith("- ")]
    named = {name for line in lines for name in re.findall(r"`(?:topodiag )?([a-z -]+)`", line.partition(": ")[0])}
    assert named == {*commands_of(cli), "bench"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    typed = re.findall(r"^\$ topodiag ([a-z][a-z-]*)", text, re.MULTILINE)
    typed += re.findall(r"`topodiag ([a-z][a-z-]*)[ `]", text)
    assert {name for name in typed if name not in cli.list_commands(click.Context(cli))} == set()


# --- docs/deploy.md: its units and scripts are what systemd and sh accept. Slurm's are run in tests/fleet/collect


TEXT = (Path(__file__).resolve().parent.parent / "docs" / "deploy.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    service, timer = blocks("ini")
    program = tmp_path / "python3"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "topodiag.service").write_text(service.replace("/usr/bin/python3", str(program)))
    (tmp_path / "topodiag.timer").write_text(timer)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "topodiag.service"), str(tmp_path / "topodiag.timer")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    ours = [line for line in done.stderr.splitlines() if "topodiag" in line]
    assert ours == []


@pytest.mark.parametrize("script", blocks("sh"))
def test_each_script_is_one_of_sh(script: str) -> None:
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0


# --- docs/api.md: its example runs as it stands, and its list of tables is that of the registry


API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(python|text)\n(.*?)^```$", API, re.MULTILINE | re.DOTALL)


def test_every_example_prints_what_the_page_shows() -> None:
    names: dict[str, Any] = {}
    shown = iter([*BLOCKS, ("", "")])
    ran = 0
    for kind, text in shown:
        if kind != "python":
            continue
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(text, "docs/api.md", "exec"), names)
        following, wanted = next(shown)
        assert following == "text", text
        assert "\n".join(line.rstrip() for line in printed.getvalue().splitlines()) == wanted.rstrip("\n"), text
        ran += 1
    assert ran == 6


def test_the_list_of_tables_is_that_of_the_registry() -> None:
    assert build_api_docs.written(API) == API, "run python tools/build_api_docs.py"


@pytest.mark.parametrize("broken", ["# No place\n", build_api_docs.START])
def test_a_page_without_a_place_for_the_tables_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match="lacks the lines"):
        build_api_docs.written(broken)


# --- docs/collector.md says what leaves a node as the collector's own tables say it


COLLECTOR = (ROOT / "docs" / "collector.md").read_text(encoding="utf-8")


def test_the_page_is_what_the_tables_say() -> None:
    assert build_collector_docs.page() == COLLECTOR, "run python tools/build_collector_docs.py"


def test_every_item_is_listed_with_the_fields_that_it_keeps() -> None:
    for probe in probes():
        row = next(line for line in COLLECTOR.split("\n") if line.startswith(f"| `{probe.id}` |"))
        assert probe.keeps
        assert all(field in row for field in probe.keeps)


def test_every_variable_that_is_kept_is_listed() -> None:
    assert [name for name in FORMS if f"`{name}`" not in COLLECTOR] == []
    assert [start for start, _ in FAMILIES if f"`{start}*`" not in COLLECTOR] == []


def test_how_to_report_a_vulnerability_is_said() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for heading in ("## How to report", "## What is trusted", "## What is not trusted", "## What leaves a node"):
        assert heading in text


OF_REPORTS = {
    "--format", "--output", "--color", "--ascii", "--quiet", "--verbose", "--width", "--html", "--redact", "--help",
    "--fail-on",
}  # fmt: skip
"""Options that all reports have: they stand on the page of the user's guide."""


@dataclass(frozen=True)
class Page:
    """A page: the words of the commands that it shows, in order where it is a list; modules `topodiag.cli.MODULE` of
    commands whose options it names, but for `elsewhere`; how many examples for Python users it has."""

    name: str
    shows: set[str] | list[str] | None = None
    commands: tuple[str, ...] = ()
    elsewhere: frozenset[str] | set[str] = frozenset()
    examples: int = 0

    def text(self) -> str:
        return (ROOT / "docs" / self.name).read_text(encoding="utf-8")


OF_COMMANDS = (
    Page("topo.md", {"check", "predict", "what-if", "diff"},
         ("topo.check", "topo.predict", "topo.what_if", "topo.diff", "topo.show"), examples=3),
    Page("model.md", {"link", "collective", "hierarchy", "step"},
         ("model.collective", "model.hierarchy", "model.link", "model.step"), examples=6),
    Page("place.md", ["audit", "audit", "solve", "solve"], ("place.audit",), OF_REPORTS, examples=9),
    Page("sweeps.md", None, ("bench.plan", "bench.run", "bench.read"), OF_REPORTS),
    Page("user-guide.md", None, ("scan",)),
    Page("diagnose.md"),
    Page("bench.md", None, ("bench.judge",)),
)  # fmt: skip
SHOWN = [(f"{page.name}: {command[:60]}", command, output)
         for page in OF_COMMANDS if page.shows is not None or page.name in {"bench.md", "diagnose.md"}
         for command, output in shown_on(ROOT / "docs" / page.name)
         if page.name != "bench.md" or "fixture:" in command]  # fmt: skip


@pytest.mark.parametrize("page", [page for page in OF_COMMANDS if page.shows], ids=lambda page: page.name)
def test_a_page_shows_its_commands(page: Page) -> None:
    words = [command.split()[1] for command, _ in shown_on(ROOT / "docs" / page.name)]
    assert (words if isinstance(page.shows, list) else set(words)) == page.shows


@pytest.mark.parametrize(("command", "output"), [row[1:] for row in SHOWN], ids=[row[0] for row in SHOWN])
def test_what_a_page_shows_is_what_the_program_prints(command: str, output: str) -> None:
    assert_printed(command, output)


@pytest.mark.parametrize(
    ("page", "module"),
    [pytest.param(page, module, id=f"{page.name}: {module}") for page in OF_COMMANDS for module in page.commands],
)
def test_every_option_is_on_its_page(page: Page, module: str) -> None:
    command: click.Command = getattr(import_module(f"topodiag.cli.{module}"), module.rpartition(".")[2])
    options = [param.opts for param in command.params if param.opts[0].startswith("-")]
    missing = [opts for opts in options if not any(f"`{option}" in page.text() for option in opts)]
    assert [opts for opts in missing if not page.elsewhere & set(opts)] == []


@pytest.mark.parametrize("page", [page for page in OF_COMMANDS if page.examples], ids=lambda page: page.name)
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
