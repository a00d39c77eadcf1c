"""What the documentation shows is what the program does."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.shown import ROOT
from tools import build_docs as tool
from topodiag.checks import registry
from topodiag.checks.page import COMMANDS, SECTIONS, Command, page_of
from topodiag.cli import cli

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
    assert tool.stale(tool.check_pages(), ROOT / "docs" / "checks") == [], "run python tools/build_docs.py"


def test_the_tool_says_that_the_pages_are_current() -> None:
    argv = [sys.executable, str(ROOT / "tools" / "build_docs.py"), "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "docs/checks is current\n", done.stderr


def test_every_check_has_its_place_on_the_page_of_its_family() -> None:
    pages = tool.check_pages()
    for check_id in registry.ids():
        assert f"\n## {check_id}\n" in pages[f"{check_id[:3]}.md"]
        assert f"({check_id[:3]}.md#{check_id.lower()})" in pages["README.md"]


@pytest.mark.parametrize("check_id", registry.ids())
def test_every_page_has_all_sections_and_a_command_to_confirm(check_id: str) -> None:
    check = registry.check_class(check_id)
    assert check is not None
    sections = page_of(check).sections
    assert [section.name for section in sections] == list(SECTIONS)
    assert all(section.blocks for section in sections)
    confirm = next(section for section in sections if section.name == COMMANDS)
    assert any(isinstance(part, Command) for block in confirm.blocks for part in block)


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
