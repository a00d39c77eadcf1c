"""`topodiag explain ID`: the page of a check, which is its class's docstring."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import no_such
from topodiag.cli.params import ascii_option, color_option, width_option

if TYPE_CHECKING:
    from topodiag.report.text import Page

SECTIONS = (
    "What it finds",
    "Why it matters",
    "Evidence it reads",
    "When it stays silent",
    "How to confirm",
    "How to fix",
    "References",
)
MAX_WIDTH = 100
"""Columns of running text: longer lines are hard to read."""
COMMANDS = "How to confirm"
"""The section of commands, one a line, each with a remark after three blanks or more."""
REMARK_COLUMN = 36
REMARK_INDENT = 20
"""A line that begins this far in continues the remark beside the command above it."""
_ITEM = re.compile(r"([-*•]|[0-9]{1,2}[.)]) +(.*)")
_GAP = re.compile(r" {3,}")


def _ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """For the shell's completion."""
    from topodiag.checks import registry  # noqa: PLC0415 - only when the shell asks

    return [check_id for check_id in registry.ids() if check_id.startswith(incomplete.upper())]


@click.command()
@click.argument("check_id", metavar="ID", shell_complete=_ids)
@color_option
@ascii_option
@width_option
@click.pass_context
def explain(ctx: click.Context, check_id: str, color: str, ascii_only: bool, width: int | None) -> None:
    """Say what check ID finds, why it matters, how to confirm it and how to fix it."""
    from topodiag.checks import registry  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.terminal import style_for  # noqa: PLC0415
    from topodiag.report.interface import Style  # noqa: PLC0415
    from topodiag.report.page import print_page  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    check = registry.check_class(check_id.strip().upper())
    if check is None:
        raise no_such("check", check_id, registry.ids(), ctx)
    style = style_for(sys.stdout, color=color, ascii_only=ascii_only, width=width)
    narrow = Style(min(style.width, MAX_WIDTH), style.color, style.ascii)
    page = Page(narrow)
    page.add(page.text((check.id, "info"), "  "), (check.title, "strong"))
    draw_docstring(
        page, inspect.cleandoc(check.__doc__ or "\n\nPages are left out under PYTHONOPTIMIZE=2 (python -OO).")
    )
    print_page(page, sys.stdout)


def draw_docstring(page: Page, doc: str) -> None:
    """The docstring: sections as headings, prose filled, the commands of "How to confirm" with their remarks beside."""
    prose: list[str] = []
    hang = ""
    section = ""

    def flush() -> None:
        nonlocal hang
        if prose:
            page.add("  " + hang, *(line + " " for line in prose))
        prose.clear()
        hang = ""

    for indent, line in _body(doc):
        item = _ITEM.fullmatch(line)
        if line in SECTIONS and not indent:
            flush()
            section = line
            page.blank()
            page.add("", (line, "strong"))
        elif not line:
            flush()
            page.blank()
        elif section == COMMANDS:
            _draw_command(page, line, remark_only=indent >= REMARK_INDENT)
        elif item is not None:
            flush()
            hang = f"{item[1]} "
            prose.append(item[2])
        else:
            prose.append(line)
    flush()


def _body(doc: str) -> Iterator[tuple[int, str]]:
    """Indent and text of the lines; the first line is the title, which is said already."""
    for line in doc.splitlines()[1:]:
        yield len(line) - len(line.lstrip()), line.strip()


def _draw_command(page: Page, line: str, *, remark_only: bool) -> None:
    command, remark = ("", line) if remark_only else [*_GAP.split(line, maxsplit=1), ""][:2]
    beside = f"{command:<{REMARK_COLUMN}}  "
    if command and remark and len(beside) + len(remark) + 2 <= page.width:
        page.add("  ", (beside, "close"), (remark, "dim"))
        return
    if command:
        page.add("  ", (command, "close"), under="    ")
    if remark:
        page.add("      ", (remark, "dim"))
