"""`topodiag explain ID`: the page of a check, which is its class's docstring."""

from __future__ import annotations

import inspect
import re
import sys
from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import no_such

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
_ITEM = re.compile(r"(\s*)([-*•]|[0-9]{1,2}[.)])\s+(.*)")


@click.command()
@click.argument("check_id", metavar="ID")
@click.option(
    "--color", type=click.Choice(("auto", "always", "never")), default="auto", show_default=True, help="Colour."
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Only ASCII characters.")
@click.option("--width", type=click.IntRange(40, 400), metavar="N", help="Columns (default: the terminal's, else 80).")
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
    draw_docstring(page, inspect.getdoc(check) or "")
    print_page(page, sys.stdout)


def draw_docstring(page: Page, doc: str) -> None:
    """The docstring: its section names as headings, paragraphs and lists wrapped, indented code as it stands."""
    paragraph: list[str] = []
    hang = ""

    def flush() -> None:
        nonlocal hang
        if paragraph:
            page.add("  " + hang, " ".join(paragraph))
            paragraph.clear()
        hang = ""

    for line in doc.splitlines():
        heading, rest = _heading(line)
        item = _ITEM.fullmatch(line)
        if heading:
            flush()
            page.blank()
            page.add("", (heading, "strong"))
            if rest:
                paragraph.append(rest)
        elif not line.strip():
            flush()
            page.blank()
        elif item is not None:
            flush()
            hang = f"{item[1]}{item[2]} "
            paragraph.append(item[3])
        elif line.startswith("    ") and not paragraph:
            page.add("  " + line[: len(line) - len(line.lstrip())], (line.strip(), "close"))
        elif not set(line.strip()) <= set("-=~"):
            paragraph.append(line.strip())
    flush()


def _heading(line: str) -> tuple[str, str]:
    """A section's name and what follows it on its line; two empty strings for any other line."""
    stripped = line.strip()
    for name in SECTIONS:
        if stripped.lower().startswith(name.lower()):
            rest = stripped[len(name) :]
            if not rest or rest[0] in ":.":
                return name, rest[1:].strip()
    return "", ""
