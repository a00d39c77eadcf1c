"""`--html FILE`: the report as one page to send on, beside what the command prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from msgspec import Struct

    from topodiag.cli.options import Printing
    from topodiag.model.node import Node
    from topodiag.model.result import Result
    from topodiag.placement.solve import Solved
    from topodiag.report.drawn import DrawnReport
    from topodiag.report.html.interface import Extras, Sheet
    from topodiag.report.text import Page


T = TypeVar("T")


def as_shown(answer: T, *, redact: bool) -> T:
    """A result, or what else a command answers, as it is to be printed: without secrets, and with `--redact` without
    names, addresses and serials. What stands in one report goes in together, as a tuple: the same thing gets the same
    token."""
    from topodiag.app.redacting import hidden, redacted  # noqa: PLC0415 - heavy

    return redacted(answer) if redact else hidden(answer)


def as_shown_with(paths: Sequence[str], answer: T, *, redact: bool) -> tuple[tuple[str, ...], T]:
    """The same where the report names the paths that it was made from."""
    if not redact:
        return tuple(paths), as_shown(answer, redact=False)
    from topodiag.app.redacting import Paths  # noqa: PLC0415

    named, shown = as_shown((Paths(tuple(paths)), answer), redact=True)
    return named.files, shown


def check_html(path: str | None, inputs: Iterable[str], printing: Printing) -> None:
    """Refuse, before any work is done, a page that would be written over what is read or over the other output.
    Raises InputError."""
    if path is None:
        return
    if path == "-":
        raise click.UsageError("--html writes a file: name it, as --html report.html.")
    from topodiag.writing import check_apart, check_writable  # noqa: PLC0415 - not for the help

    check_writable(path)
    check_apart(path, inputs)


def write_html(path: str | None, sheet: Callable[[], Sheet]) -> None:
    """Write the page; the file appears whole or not at all. Raises InputError."""
    if path is None:
        return
    from topodiag.report.html.page import html_of  # noqa: PLC0415 - jinja2, which only pages need
    from topodiag.writing import replacing  # noqa: PLC0415

    text = html_of(sheet())
    with replacing(path, private=True) as stream:
        stream.write(text.encode("utf-8", "backslashreplace"))
    if not click.get_current_context().params.get("quiet"):
        click.echo(f"page written: {path}", err=True)


def machines_of(*nodes: Node) -> Callable[[], Extras]:
    """The pictures of these machines, for `write_drawn`."""

    def drawn() -> Extras:
        from topodiag.report.html.machines import machines  # noqa: PLC0415 - for a page only

        return machines(*nodes)

    return drawn


def write_drawn(  # noqa: PLR0917 - what a page is made of
    path: str | None,
    command: str,
    draw: Callable[[Page], None],
    dump: Callable[[], Struct] | None,
    result: Callable[[], Result],
    more: Callable[[], Extras] | None = None,
) -> None:
    """Write the page of a command that draws its answer; `dump` is None where it prints no JSON; `result` holds its
    findings, nodes and inputs, `more` the pictures and tables of that command alone."""
    if path is None:
        return
    from topodiag.report.html.sheets import drawn_sheet  # noqa: PLC0415

    def sheet() -> Sheet:
        return drawn_sheet(command, draw, dump and dump(), result(), more and more())

    write_html(path, sheet)


def write_result(
    path: str, command: str, result: Result, report: Callable[[], DrawnReport], solved: Solved | None = None
) -> None:
    """Write the page of a command whose answer is a result; `solved` is the better map of a badly placed job."""
    from topodiag.report.html.sheets import result_sheet  # noqa: PLC0415

    def sheet() -> Sheet:
        return result_sheet(command, result, report(), None if solved is None else _placed(solved))

    write_html(path, sheet)


def _placed(solved: Solved) -> Extras:
    from topodiag.report.html.placed import solve_extras  # noqa: PLC0415
    from topodiag.report.place.solve import solution_json  # noqa: PLC0415

    return solve_extras(solved, solution_json(solved))
