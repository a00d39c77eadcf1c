"""What the documentation shows is what the program does."""

import io
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click
import pytest

from tests.shown import ROOT
from tools import build_api_docs, build_collector_docs, build_docs
from topodiag.checks import registry
from topodiag.cli import cli
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
