"""Where a report goes: standard output or a file, as a page of HTML beside it, and the exit code that its findings call
for."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

from topodiag.cli.errors import CLEAN, FOUND
from topodiag.model.finding import Severity
from topodiag.model.result import Result
from topodiag.model.verdict import State
from topodiag.writing import replacing

if TYPE_CHECKING:
    from topodiag.cli.options import Printing
    from topodiag.model.fleet import FleetResult
    from topodiag.model.layout import Layout
    from topodiag.placement.solve import Solved
    from topodiag.report.documents.from_model import Document
    from topodiag.report.html.interface import Extras, Sheet
    from topodiag.report.page import Draw
    from topodiag.report.table_files import Row
    from topodiag.report.text import Page

T = TypeVar("T")
STOPPED = (State.SLOW, State.FAILED, State.HUNG)
LOW = ("low", "failed")
"""Words for a measured run that is not what its machine should reach."""


@contextmanager
def opened(path: str | None) -> Iterator[TextIO]:
    """The stream to write to: standard output, also for `-`, or a UTF-8 file that appears whole or not at all."""
    if path is None or path == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    with replacing(path) as raw, io.TextIOWrapper(raw, encoding="utf-8") as stream:
        yield stream


def write_bytes(path: str | None, data: bytes) -> None:
    """The bytes of a file, as `opened`. Raises InputError."""
    if path is None or path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    with replacing(path) as raw:
        raw.write(data)


def write_text(path: str | None, text: str) -> None:
    """The text of a file, as `opened`. Raises InputError."""
    with opened(path) as stream:
        stream.write(text)


def write_table(path: str | None, columns: Mapping[str, type | str], rows: Iterable[Row], *, parquet: bool) -> None:
    """A table as CSV, or as Parquet in a file. Raises InputError."""
    from topodiag.report.table_files import write_csv, write_parquet  # noqa: PLC0415 - not for other commands

    if parquet:
        with replacing(str(path)) as raw:
            write_parquet(columns, rows, raw)
    else:
        with opened(path) as stream:
            write_csv(columns, rows, stream)


def write_svg(path: str, picture: str) -> None:
    """The picture of `--svg FILE.svg`; the file appears whole or not at all. Raises InputError."""
    with replacing(path) as raw:
        raw.write(picture.encode())


def write_page(draw: Callable[[Page], None], dump: Callable[[], Document], printing: Printing) -> None:
    """What a command has to say, as a page or, with the format `json`, as one object."""
    if printing.format_ != "json":
        write_drawing(draw, printing)
        return
    from topodiag.report.documents.from_model import write_json  # noqa: PLC0415 - only where it is asked for

    with opened(printing.output) as stream:
        write_json(dump(), stream)


def write_drawing(draw: Callable[[Page], None], printing: Printing) -> None:
    """What a command has to say, as a page."""
    from topodiag.report.page import print_page  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    with opened(printing.output) as stream:
        page = Page(printing.style(stream))
        draw(page)
        page.repeat_answers()
        print_page(page, stream)


def draw_note(draw: Callable[[Page], None]) -> None:
    """What is said beside an emitted file, on standard error."""
    from topodiag.cli.terminal import style_for  # noqa: PLC0415 - rich, which other formats do not need
    from topodiag.report.page import print_page  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    page = Page(style_for(sys.stderr))
    draw(page)
    print_page(page, sys.stderr)


def write_result(result: Result, printing: Printing, draw: Draw) -> None:
    """A result in the format that is asked for; `draw` is how the command shows it to a person."""
    with opened(printing.output) as stream:
        if printing.format_ == "table":
            from topodiag.report.page import print_drawn  # noqa: PLC0415 - rich, which other formats do not need

            print_drawn(draw, result, stream, printing.style(stream))
        else:
            from topodiag.report.registry import report  # noqa: PLC0415 - not for other commands

            report(printing.format_)(result, stream, printing.style(stream))


def printable(answer: T, *, redact: bool) -> T:
    """A result, or what else a command answers, as it is to be printed: without secrets, and with `--redact` without
    names, addresses and serials. What stands in one report goes in together, as a tuple: the same thing gets the same
    token."""
    from topodiag.app.redact.redacting import hidden, redacted  # noqa: PLC0415 - heavy

    return redacted(answer) if redact else hidden(answer)


def printable_with(paths: Sequence[str], answer: T, *, redact: bool) -> tuple[tuple[str, ...], T]:
    """As `printable`, with the paths of the evidence that the report names."""
    if not redact:
        return tuple(paths), printable(answer, redact=False)
    from topodiag.app.redact.redacting import Paths  # noqa: PLC0415

    named, shown = printable((Paths(tuple(paths)), answer), redact=True)
    return named.files, shown


def _write_html(path: str, sheet: Sheet) -> None:
    """Write the page; the file appears whole or not at all. Raises InputError."""
    from topodiag.report.html.page import html_of  # noqa: PLC0415 - jinja2, which only pages need

    text = html_of(sheet)
    with replacing(path, private=True) as stream:
        stream.write(text.encode("utf-8", "backslashreplace"))
    if not click.get_current_context().params.get("quiet"):
        click.echo(f"page written: {path}", err=True)


def write_answer(  # noqa: PLR0917 - the parts of a page
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
        from topodiag.report.html.page import drawn_sheet  # noqa: PLC0415 - for a page only

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
        from topodiag.report.html.page import result_sheet  # noqa: PLC0415 - for a page only

        more = None
        if solved is not None:
            from topodiag.report.html.placed import solve_extras  # noqa: PLC0415

            more = solve_extras(solved)
        _write_html(printing.html, result_sheet(command, result, draw, more))


def better_map(printing: Printing, result: Result, paths: Sequence[str], layout: Layout | None = None) -> Solved | None:
    """The better map of a badly placed job, for a page of HTML alone."""
    if printing.html is None:
        return None
    from topodiag.app.place import better_placement  # noqa: PLC0415

    return better_placement(result, paths, layout)


def verdict(result: Result, fail_on: str) -> int:
    """FOUND for a slow, failed or hung job, a run below what its machine should reach, and a finding at or above this
    severity; else CLEAN. `never` makes all clean. Where the last run of a log is healthy, faults that only its earlier
    runs met count as notes."""
    state = result.verdict.state if result.verdict is not None else result.state
    low = any(benchmark.verdict in LOW for benchmark in result.benchmarks)
    if fail_on != "never" and (state in STOPPED or low):
        return FOUND
    worst = result.worst
    if result.verdict is not None and state is State.HEALTHY:
        past = {job.name for job in result.verdict.jobs if job.state is not State.HEALTHY}
        worst = max(
            (
                Severity.INFO if finding.where.jobs and past.issuperset(finding.where.jobs) else finding.severity
                for finding in result.findings
            ),
            default=None,
        )
    return verdict_of(worst, fail_on)


def fleet_verdict(result: FleetResult, fail_on: str) -> int:
    """FOUND for a node to exclude, which is the verdict of a fleet, and for a finding at or above this severity."""
    if fail_on != "never" and result.failed:
        return FOUND
    return verdict_of(result.worst, fail_on)


def verdict_of(worst: Severity | None, fail_on: str) -> int:
    """The same of the worst severity alone, None where nothing was found."""
    if fail_on == "never" or worst is None:
        return CLEAN
    return FOUND if worst >= Severity[fail_on.upper()] else CLEAN
