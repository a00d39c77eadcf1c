"""Writes docs/checks/ from the checks' own docstrings, and docs/demo.svg from what `topodiag demo` prints.

python tools/build_docs.py            write them
python tools/build_docs.py --check    exit 1 when a page of the checks is not what the docstrings say
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from topodiag.checks import registry
from topodiag.checks.interface import Check
from topodiag.checks.page import Command, Prose, Section, page_of

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
WIDTH = 110
"""Columns of running text."""
COMMAND_COLUMNS = 44
"""A remark stands beside a command up to this wide, else above it."""
_ID = re.compile(rf"`[^`]*`|\b(?:{'|'.join(registry.FAMILIES)})[0-9]{{3}}\b")
_SPECIAL = re.compile(r"(`[^`]*`)|([*<\[\]\\|])")
_LIST_LIKE = re.compile(r"^(\s*)([-+*#>]|[0-9]+[.)])(?=\s)")


def check_pages() -> dict[str, str]:
    """All pages of docs/checks/, by file name: the index and one page a family."""
    classes = {check_id: made for check_id in registry.ids() if (made := registry.check_class(check_id)) is not None}
    families: dict[str, dict[str, type[Check[Any]]]] = {}
    for check_id, check in classes.items():
        families.setdefault(check_id[:3], {})[check_id] = check
    pages = {f"{family}.md": family_page(family, checks) for family, checks in families.items()}
    return {"README.md": index(families), **pages}


def index(families: dict[str, dict[str, type[Check[Any]]]]) -> str:
    lines = [
        "# The checks",
        "",
        "One page a family. Each check says what it finds, why that matters, what it reads, when it stays silent,",
        "how to confirm it and how to fix it. The terminal shows the same page:",
        "",
        "```console",
        "$ topodiag explain NVL001",
        "```",
        "",
        "`tools/build_docs.py` writes these pages from the docstrings of the checks. To add a check, read",
        "[how to add something](../contributing.md).",
    ]
    for family, checks in families.items():
        lines += ["", f"## [{family}: {registry.FAMILIES[family]}]({family}.md)", "", "| check | finds |", "|---|---|"]
        lines += [f"| {link(check_id, '')} | {escaped(check.title)} |" for check_id, check in checks.items()]
    return "\n".join(lines) + "\n"


def family_page(family: str, checks: dict[str, type[Check[Any]]]) -> str:
    lines = [f"# {family}: {registry.FAMILIES[family]}", "", "[All checks](README.md)", ""]
    lines += [f"- {link(check_id, family)}: {escaped(check.title)}" for check_id, check in checks.items()]
    for check_id, check in checks.items():
        lines += ["", f"## {check_id}", "", f"**{escaped(check.title[:1].upper() + check.title[1:])}.**"]
        for section in page_of(check).sections:
            lines += ["", f"### {section.name}", *section_lines(section, family, check_id)]
    return "\n".join(lines) + "\n"


def section_lines(section: Section, family: str, check_id: str) -> list[str]:
    """Prose filled, commands in console blocks, each block after an empty line."""
    lines: list[str] = []
    for block in section.blocks:
        commands: list[Command] = []
        for part in block:
            if isinstance(part, Command):
                commands.append(part)
                continue
            lines += [*console(commands), *prose(part, family, check_id)]
            commands = []
        lines += console(commands)
    return lines


def prose(part: Prose, family: str, check_id: str) -> list[str]:
    text = linked(escaped(part.text), family, check_id)
    filled = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    # A line of prose that begins like an item or a heading would become one.
    return ["", *(_LIST_LIKE.sub(r"\1\\\2", line) for line in filled)]


def console(commands: list[Command]) -> list[str]:
    """A console block; a remark is a comment of the shell, beside the command or above it."""
    if not commands:
        return []
    short = [each.command for each in commands if len(each.command) <= COMMAND_COLUMNS]
    column = max(map(len, short), default=0)
    lines = ["", "```console"]
    for each in commands:
        if each.remarks and len(each.remarks) == 1 and len(each.command) <= COMMAND_COLUMNS:
            lines.append(f"$ {each.command:<{column}}  # {each.remarks[0]}")
        else:
            lines += [*(f"# {remark}" for remark in each.remarks), f"$ {each.command}"]
    return [*lines, "```"]


def escaped(text: str) -> str:
    """Text as Markdown shows it, code in backticks as it stands."""
    return _SPECIAL.sub(lambda found: found[1] or "\\" + found[2], text)


def linked(text: str, family: str, check_id: str) -> str:
    """Ids of other checks become links; ids in backticks and the check's own stay."""

    def replaced(found: re.Match[str]) -> str:
        known = found[0] != check_id and found[0] in registry.ids()
        return link(found[0], family) if known else found[0]

    return _ID.sub(replaced, text)


def link(check_id: str, family: str) -> str:
    page = "" if check_id[:3] == family else f"{check_id[:3]}.md"
    return f"[{check_id}]({page}#{check_id.lower()})"


def picture() -> str:
    """`topodiag demo` as an SVG of a terminal 100 columns wide."""
    from rich.console import Console
    from rich.text import Text

    argv = [sys.executable, "-m", "topodiag", "demo", "--color", "always", "--width", "100"]
    env = {**os.environ, "PYTHONUTF8": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color"}
    shown = subprocess.run(argv, capture_output=True, text=True, env=env, check=False).stdout
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(shown))
    return console.export_svg(title="topodiag demo")


def stale(wanted: dict[str, str], folder: Path) -> list[str]:
    """Names of pages that differ, are missing, or belong to no family."""
    there = {page.name: page.read_text(encoding="utf-8") for page in folder.glob("*.md")}
    return sorted(name for name in {*there, *wanted} if there.get(name) != wanted.get(name))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is stale")
    check = parser.parse_args().check
    wanted = check_pages()
    folder = DOCS / "checks"
    differ = stale(wanted, folder)
    if check:
        print(f"stale: {', '.join(differ)}: run python tools/build_docs.py" if differ else "docs/checks is current")
        return 1 if differ else 0
    folder.mkdir(exist_ok=True)
    for name in differ:
        if name in wanted:
            (folder / name).write_text(wanted[name], encoding="utf-8")
        else:
            (folder / name).unlink()
    (DOCS / "demo.svg").write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
