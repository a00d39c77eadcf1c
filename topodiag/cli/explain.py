"""`topodiag explain ID`: the page of a check, which is its class's docstring, or what a variable of NCCL does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import no_such
from topodiag.cli.former import Command
from topodiag.cli.options import ascii_option, color_option, width_option

if TYPE_CHECKING:
    from topodiag.checks.page import PageOfCheck, Prose
    from topodiag.report.text import Page

MAX_WIDTH = 100
"""Columns of running text: longer lines are hard to read."""
REMARK_COLUMN = 36


def _ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """For the shell's completion."""
    from topodiag.checks import registry  # noqa: PLC0415 - only when the shell asks

    return [check_id for check_id in registry.ids() if check_id.startswith(incomplete.upper())]


@click.command(cls=Command)
@click.argument("check_id", metavar="NAME", required=False, default="", shell_complete=_ids)
@click.option(
    "--line", metavar="TEXT", help="Say which sentence of the catalogue this line is, and why others are not."
)
@color_option
@ascii_option
@width_option
@click.pass_context
def explain(
    ctx: click.Context, check_id: str, *, line: str | None, color: str, ascii_only: bool, width: int | None
) -> None:
    """Explain a check: what it finds, why it matters, how to confirm it and how to fix it.

    Or a variable of NCCL: what it does, its default, and the releases that read it. Or an event, such as
    gpudirect.module_missing: the sentences that report it, each with its source and its samples.
    """
    from topodiag.checks import registry  # noqa: PLC0415 - heavy from here on
    from topodiag.checks.page import page_of  # noqa: PLC0415
    from topodiag.cli.explain_sentences import draw_event, draw_line  # noqa: PLC0415
    from topodiag.cli.terminal import style_for  # noqa: PLC0415
    from topodiag.report.interface import Style  # noqa: PLC0415
    from topodiag.report.page import print_page  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    if bool(check_id) == (line is not None):
        raise click.UsageError("give a name or --line TEXT", ctx)
    name = check_id.strip().upper()
    check = registry.check_class(name)
    style = style_for(sys.stdout, color=color, ascii_only=ascii_only, width=width)
    narrow = Style(min(style.width, MAX_WIDTH), style.color, style.ascii)
    page = Page(narrow)
    if line is not None:
        draw_line(page, line)
        print_page(page, sys.stdout)
        return
    if check is None:
        if not draw_variable(page, name) and not draw_event(page, check_id.strip()):
            raise _unknown(check_id, ctx)
        print_page(page, sys.stdout)
        return
    page.add(page.text((check.id, "info"), "  "), (check.title, "strong"))
    parsed = page_of(check)
    if parsed.sections:
        draw_sections(page, parsed)
    else:
        page.add("  ", "Pages are left out under PYTHONOPTIMIZE=2 (python -OO).")
    draw_relations(page, check.id)
    print_page(page, sys.stdout)


def draw_variable(page: Page, name: str) -> bool:
    """What NCCL does with a variable of its environment; False for a name that it never read."""
    from topodiag.checks.shared import nccl_variables  # noqa: PLC0415 - only where no check has the name

    known, old = nccl_variables.variable(name), nccl_variables.renamed(name)
    if known is None and old is None:
        return False
    page.add("", (name, "strong"))
    if known is not None:
        page.add("  ", known.what + (" (by its name alone: not documented)" if known.by_name else ""))
        page.add("  ", f"default: {known.default}")
        first = "2.3.5 or earlier" if known.since == "2.3.5" else known.since
        page.add("  ", f"read by NCCL {first} to {known.until}" if known.until else f"read since NCCL {first}")
    if old is not None:
        page.add("  ", old.what + (f": {old.now}" if old.now else ""))
    return True


def _unknown(given: str, ctx: click.Context) -> click.UsageError:
    from topodiag.checks import registry  # noqa: PLC0415 - for a name that nothing has
    from topodiag.checks.shared import nccl_variables  # noqa: PLC0415

    if given.strip().upper().startswith("NCCL_"):
        return no_such("variable of NCCL", given, nccl_variables.known(), ctx)
    return no_such("check", given, registry.ids(), ctx)


def draw_sections(page: Page, parsed: PageOfCheck) -> None:
    """Sections as headings, prose filled, each command of "How to confirm" on its line with its remark beside it."""
    from topodiag.checks.page import Command  # noqa: PLC0415 - the checks load when a page is drawn

    for section in parsed.sections:
        page.blank()
        page.add("", (section.name, "strong"))
        for at, block in enumerate(section.blocks):
            if at:
                page.blank()
            for part in block:
                if isinstance(part, Command):
                    _draw_command(page, part.command, part.remarks)
                else:
                    _draw_prose(page, part)


def draw_relations(page: Page, check_id: str) -> None:
    """What the fault of a check leads to, and what explains it, by the rules that order findings."""
    from topodiag.verdict.registry import relations_of  # noqa: PLC0415 - only a page that is drawn needs the rules

    leads_to, explained_by = relations_of(check_id)
    for heading, relations in (("What it leads to", leads_to), ("What explains it", explained_by)):
        if relations:
            page.blank()
            page.add("", (heading, "strong"))
            for ids, because in relations:
                page.add("  ", (", ".join(ids), "close"), f"  {because}", under="    ")


def _draw_prose(page: Page, prose: Prose) -> None:
    page.add("  " + (f"{prose.mark} " if prose.mark else ""), prose.text)


def _draw_command(page: Page, command: str, remarks: tuple[str, ...]) -> None:
    first, rest = (remarks[0], remarks[1:]) if remarks else ("", ())
    beside = f"{command:<{REMARK_COLUMN}}  "
    if first and len(beside) + len(first) + 2 <= page.width:
        page.add("  ", (beside, "close"), (first, "dim"))
    else:
        page.add("  ", (command, "close"), under="    ")
        rest = remarks
    for remark in rest:
        page.add("      ", (remark, "dim"))
