"""`--html FILE`: the report as one page to send on, beside what the command prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from topodiag.cli.output import check_output, write_page, write_result

if TYPE_CHECKING:
    from topodiag.cli.options import Printing
    from topodiag.model.result import Result
    from topodiag.placement.solve import Solved
    from topodiag.report.documents.from_model import Document
    from topodiag.report.drawn import Draw
    from topodiag.report.html.interface import Extras, Sheet
    from topodiag.report.text import Page


T = TypeVar("T")


def as_shown(answer: T, *, redact: bool) -> T:
    """A result, or what else a command answers, as it is to be printed: without secrets, and with `--redact` without
    names, addresses and serials. What stands in one report goes in together, as a tuple: the same thing gets the same
    token."""
    from topodiag.app.redact.redacting import hidden, redacted  # noqa: PLC0415 - heavy

    return redacted(answer) if redact else hidden(answer)


def as_shown_with(paths: Sequence[str], answer: T, *, redact: bool) -> tuple[tuple[str, ...], T]:
    """The same where the report names the paths that it was made from."""
    if not redact:
        return tuple(paths), as_shown(answer, redact=False)
    from topodiag.app.redact.redacting import Paths  # noqa: PLC0415

    named, shown = as_shown((Paths(tuple(paths)), answer), redact=True)
    return named.files, shown


def check_written(printing: Printing, inputs: Iterable[str]) -> None:
    """Refuse, before any work is done, an output that cannot be written, and a page over what is read. Raises
    InputError."""
    check_output(printing.output)
    if printing.html is None:
        return
    if printing.html == "-":
        raise click.UsageError("--html writes a file: name it, as --html report.html.")
    from topodiag.writing import check_apart, check_writable  # noqa: PLC0415 - not for the help

    check_writable(printing.html)
    check_apart(printing.html, inputs)


def _write_html(path: str, sheet: Sheet) -> None:
    """Write the page; the file appears whole or not at all. Raises InputError."""
    from topodiag.report.html.page import html_of  # noqa: PLC0415 - jinja2, which only pages need
    from topodiag.writing import replacing  # noqa: PLC0415

    text = html_of(sheet)
    with replacing(path, private=True) as stream:
        stream.write(text.encode("utf-8", "backslashreplace"))
    if not click.get_current_context().params.get("quiet"):
        click.echo(f"page written: {path}", err=True)


def write_answer(  # noqa: PLR0917 - what a page is made of
    printing: Printing,
    command: str,
    draw: Callable[[Page], None],
    dump: Callable[[], Document],
    result: Callable[[], Result],
    more: Callable[[], Extras],
) -> None:
    """What a command draws, on its stream and as a page of HTML; `result` holds its findings, nodes and inputs, `more`
    the pictures and tables of that command alone."""
    if printing.format_ in {"table", "json"}:
        write_page(draw, dump, printing)
    if printing.html is not None:
        from topodiag.report.html.sheets import drawn_sheet  # noqa: PLC0415 - for a page only

        _write_html(printing.html, drawn_sheet(command, draw, dump(), result(), more()))


def write_report(printing: Printing, command: str, result: Result, draw: Draw, solved: Solved | None = None) -> None:
    """Write a result in the format that is asked for, and as a page of HTML."""
    write_result(result, printing, draw)
    write_result_page(printing, command, result, draw, solved)


def write_result_page(
    printing: Printing, command: str, result: Result, draw: Draw, solved: Solved | None = None
) -> None:
    """Write the page of a command whose answer is a result; `solved` is the better map of a badly placed job."""
    if printing.html is not None:
        from topodiag.report.html.sheets import result_sheet  # noqa: PLC0415 - for a page only

        more = None if solved is None else _placed(solved)
        _write_html(printing.html, result_sheet(command, result, draw, more))


def _placed(solved: Solved) -> Extras:
    from topodiag.report.html.placed import solve_extras  # noqa: PLC0415
    from topodiag.report.place.solve import solution_json  # noqa: PLC0415

    return solve_extras(solved, solution_json(solved))
