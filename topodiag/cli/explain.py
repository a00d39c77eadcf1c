"""`topodiag explain ID`: the page of a check, which is its class's docstring, or what a variable of NCCL does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from topodiag.cli.errors import unknown_name
from topodiag.cli.options import Command, Printing, format_option, options, value_options

if TYPE_CHECKING:
    from topodiag.app.sentences import Signature
    from topodiag.checks.interface import Check
    from topodiag.checks.page import PageOfCheck
    from topodiag.report.text import Page

MAX_WIDTH = 100
"""Columns of running text: longer lines are hard to read."""
REMARK_COLUMN = 36


def _ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """For the shell's completion."""
    from topodiag.checks import registry  # noqa: PLC0415 - only when the shell asks

    return [check_id for check_id in registry.ids() if check_id.startswith(incomplete.upper())]


@click.command(cls=Command)
@click.argument("name", metavar="[ID|FAMILY|EVENT|NCCL_VARIABLE|systems]", required=False, shell_complete=_ids)
@options("line", of="explain")
@format_option()
@value_options("printing", Printing, options("color", "ascii_only", "width", "verbose"))
@click.pass_context
def explain(ctx: click.Context, name: str | None, *, line: str | None, printing: Printing) -> None:
    """List the families of checks (-v: all checks); the checks of a family (NVL); or explain one (NVL001): what it
    finds, why it matters, how to confirm and to fix it.

    `systems` lists the names that --system takes.

    Or explain a variable of NCCL or RCCL: what it does, its default, and the releases that read it. Or an event, such
    as gpudirect.module_missing: the sentences that report it, each with its source and its samples.
    """
    from topodiag.checks import registry  # noqa: PLC0415 - heavy from here on
    from topodiag.report.interface import Style  # noqa: PLC0415
    from topodiag.report.page import print_page  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    if line is not None and (name or printing.format_ == "json"):
        raise click.UsageError("--line goes with no name and with --format table only", ctx)
    wanted = (name or "").strip().upper()
    listed = [check_id for check_id in registry.ids() if check_id[:3] == wanted or not wanted]
    checks = [cls for check_id in listed or [wanted] if (cls := registry.check_class(check_id)) is not None]
    if printing.format_ == "json":
        if not checks:
            raise _unknown(str(name), ctx)
        _print_json(checks)
        return
    style = printing.style(sys.stdout)
    page = Page(Style(min(style.width, MAX_WIDTH), style.color, style.ascii))
    if line is not None:
        draw_line(page, line)
    elif listed:
        _draw_list(page, checks, folded=not wanted and not printing.verbose)
    elif checks:
        _draw_check(page, checks[0])
    elif not _draw_other(page, str(name).strip()):
        raise _unknown(str(name), ctx)
    print_page(page, sys.stdout)


def _print_json(checks: list[type[Check[Any]]]) -> None:
    import json  # noqa: PLC0415 - only for a program that asks

    click.echo(json.dumps([{"id": check.id, "title": check.title} for check in checks], indent=2))


def _draw_other(page: Page, name: str) -> bool:
    """The names that --system takes, a variable or an event; False for a name of none of them."""
    from topodiag.app.model import known_systems  # noqa: PLC0415 - only where no check has the name

    if name.lower() != "systems":
        return draw_variable(page, name.upper()) or draw_event(page, name)
    for system in known_systems():
        page.add("", system)
    return True


def _draw_list(page: Page, checks: list[type[Check[Any]]], *, folded: bool) -> None:
    """Ids with their titles; `folded` a line for each family."""
    from topodiag.checks import registry  # noqa: PLC0415 - loaded by now

    for check in () if folded else checks:
        page.add(page.text((check.id, "info"), "  "), check.title)
    for family, about in registry.FAMILIES.items() if folded else ():
        count = sum(check.id.startswith(family) for check in checks)
        page.add(page.text((family, "info"), f"  {count:2}  "), about)
    more = "NVL lists a family, NVL001 explains a check, -v lists all" if folded else f"{checks[0].id} for one"
    page.add("", (f"topodiag explain {more}", "dim"))


def _draw_check(page: Page, check: type[Check[Any]]) -> None:
    from topodiag.checks.page import page_of  # noqa: PLC0415 - the checks are loaded

    page.add(page.text((check.id, "info"), "  "), (check.title, "strong"))
    parsed = page_of(check)
    if parsed.sections:
        draw_sections(page, parsed)
    else:
        page.add("  ", "Pages are left out under PYTHONOPTIMIZE=2 (python -OO).")
    draw_relations(page, check.id)


def draw_variable(page: Page, name: str) -> bool:
    """What NCCL or RCCL does with a variable of its environment; False for a name that neither ever read."""
    from topodiag.checks.shared import nccl_variables  # noqa: PLC0415 - only where no check has the name

    known, old = nccl_variables.variable(name), nccl_variables.renamed(name)
    if known is None and old is None:
        return False
    page.add("", (name, "strong"))
    if known is not None:
        page.add("  ", known.what + (" (by its name alone: not documented)" if known.by_name else ""))
        page.add("  ", f"default: {known.default}")
        first, library = "2.3.5 or earlier" if known.since == "2.3.5" else known.since, known.library
        span = f"{first} to {known.until}" if known.until else first
        page.add("  ", f"read since {library} {first}" if first and not known.until else f"read by {library} {span}")
    if old is not None:
        page.add("  ", old.what + (f": {old.now}" if old.now else ""))
    return True


def _unknown(given: str, ctx: click.Context) -> click.UsageError:
    from topodiag.checks import registry  # noqa: PLC0415 - for a name that nothing has
    from topodiag.checks.shared import nccl_variables  # noqa: PLC0415

    if given.strip().upper().startswith("NCCL_"):
        return unknown_name("variable of NCCL", given, nccl_variables.known(), ctx)
    families = sorted({check_id[:3] for check_id in registry.ids()})
    return unknown_name("check", given, [*registry.ids(), *families], ctx, hint=f"Families: {', '.join(families)}.")


def draw_sections(page: Page, parsed: PageOfCheck) -> None:
    """Sections as headings, prose filled, each command of "How to confirm" on its line with its remark beside it."""
    from topodiag.checks.page import Command  # noqa: PLC0415 - the checks load when a page is drawn

    for section in parsed.sections:
        page.heading(section.name)
        for at, block in enumerate(section.blocks):
            if at:
                page.blank()
            for part in block:
                if isinstance(part, Command):
                    _draw_command(page, part.command, part.remarks)
                else:
                    page.add("  " + (f"{part.mark} " if part.mark else ""), part.text)


def draw_relations(page: Page, check_id: str) -> None:
    """What the fault of a check leads to, and what explains it, by the rules that order findings."""
    from topodiag.verdict.interface import relations_of  # noqa: PLC0415 - only a page that is drawn needs the rules

    leads_to, explained_by = relations_of(check_id)
    for heading, relations in (("What it leads to", leads_to), ("What explains it", explained_by)):
        if relations:
            page.heading(heading)
            for ids, because in relations:
                page.add("  ", (", ".join(ids), "close"), f"  {because}", under="    ")


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


def draw_event(page: Page, name: str) -> bool:
    """The entries of an event or the entry with this id; False where there is none."""
    from topodiag.app.sentences import entries  # noqa: PLC0415 - the catalogue is read where it is asked for

    signatures = entries(name)
    for number, entry in enumerate(signatures):
        if number:
            page.blank()
        _draw_entry(page, entry)
    return bool(signatures)


def draw_line(page: Page, line: str) -> None:
    """Which entries take a line, with what they read out of it, and why others that have its words do not."""
    from topodiag.app.sentences import LineMatch, verdicts  # noqa: PLC0415 - as above

    answers = verdicts(line)
    if not answers:
        page.add("", "no entry of the catalogue has words of this line")
    for answer in answers:
        entry = answer.entry
        if isinstance(answer, LineMatch):
            page.add("", ("takes it  ", "ok"), (entry.id, "strong"), f"  event {entry.says}")
            for name, value in answer.fields.items():
                page.add("  ", f"{name} = {value}")
        else:
            page.add("", ("leaves it  ", "dim"), (entry.id, "strong"), f"  {answer.why}")


def _draw_entry(page: Page, entry: Signature) -> None:
    page.add("", (entry.id, "strong"), f"  event {entry.says}")
    for name, text in (
        ("source", "; ".join(entry.sources)),
        ("speaker", f"{entry.trust}, about a {entry.scope}"),
        ("literal", " | ".join(entry.literals)),
        ("pattern", entry.match),
        ("unless", entry.unless),
        ("near", entry.near.match if entry.near is not None else ""),
        ("ended by", entry.over.match if entry.over is not None else ""),
    ):
        if text:
            page.add(f"  {name:<9}", text)
    for name, lines in (("takes", entry.shows), ("leaves", entry.silent)):
        for line in lines:
            page.add(f"  {name:<9}", *line.replace("\n", " ⏎ ").splitlines())
