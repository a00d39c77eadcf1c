"""`topodiag logs`: rebuild a job from its NCCL logs, print what it was and what was wrong with it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from topodiag.cli.dimensions import job_option, layout_of, order_option, size_options
from topodiag.cli.errors import Outcome
from topodiag.cli.options import Command, Printing, on_command_line, options, report_options, value_options
from topodiag.cli.params import EVIDENCE
from topodiag.report.job.registry import TABLES, VIEWS, table

if TYPE_CHECKING:
    from topodiag.model.result import Result
    from topodiag.report.text import Page


def _on(**views: bool) -> tuple[str, ...]:
    return tuple(name for name in VIEWS if views[name])


_SWITCHES = (click.option(f"--{name}", is_flag=True, help=view.help) for name, view in VIEWS.items())
view_options = value_options("views", _on, options(*_SWITCHES), VIEWS)
"""A switch for each view; those that are on reach the command as its argument `views`, in the registry's order."""


@click.command(cls=Command, sections={"Views, instead of summary and findings": tuple(VIEWS)})
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=EVIDENCE)
@view_options
@job_option
@size_options()
@order_option
@options("flight", "workers", "dask", "save", of="logs")
@click.option(
    "--csv", "csv_", type=click.Choice(TABLES), metavar="TABLE", help=f"Write a table as CSV: {', '.join(TABLES)}."
)
@click.option("--parquet", type=click.Choice(TABLES), metavar="TABLE", help="The same as Parquet, to --output.")
@report_options()
@click.pass_obj
def logs(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    paths: tuple[str, ...],
    views: tuple[str, ...],
    sizes: dict[str, int],
    order: str,
    flight: tuple[str, ...],
    workers: int | None,
    dask: str | None,
    save: str | None,
    csv_: str | None,
    parquet: str | None,
    printing: Printing,
) -> None:
    """Rebuild a job from its NCCL logs and say what is wrong with its communication.

    PATH is a log, a folder, a pattern, - for standard input, or facts that --save kept; .gz, .zst, tar and zip are
    unpacked.
    `topodiag env` prints the settings that make a job write such logs.
    """
    _refuse(bool(views), printing.format_ if on_command_line("format_") else None, csv_, parquet, printing.output)
    from topodiag.fleet.cores import one_thread  # noqa: PLC0415

    one_thread()
    from topodiag.app.case.jobs import LogOptions  # noqa: PLC0415
    from topodiag.app.logs import logs as judge_logs  # noqa: PLC0415
    from topodiag.cli import output  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.progress import reading  # noqa: PLC0415

    for dump in flight:
        _check_dump(dump)
    sums, layout = printing.format_ != "table" or any((printing.html, save, csv_, parquet)), layout_of(sizes, order)
    options = LogOptions(workers=workers, dask=dask, layout=layout, flight=flight, save=save, sums=sums)
    with reading(printing, "logs", "judging", "DownloadColumn", "TransferSpeedColumn") as tell:
        result = judge_logs(paths, options=options, on_progress=tell)
    solved = output.better_map(printing, result, paths, layout)
    result, solved = output.printable((result, solved), redact=printing.redact)
    reached.code = output.verdict(result, printing.fail_on)
    output.write_result_page(printing, "logs", result, _draw, solved)
    if name := parquet or csv_:
        chosen = table(name)
        output.write_table(printing.output, chosen.types, chosen.rows(result), parquet=parquet is not None)
    else:
        output.write_result(result, printing, partial(_draw, views=views))


def _draw(page: Page, result: Result, views: Sequence[str] = ()) -> None:
    from topodiag.report.job.table import draw_logs  # noqa: PLC0415 - only where it is asked for

    draw_logs(page, result, views)


def _refuse(viewed: bool, format_: str | None, csv_: str | None, parquet: str | None, output: str | None) -> None:
    outputs = [name for name, on in (("--csv", csv_), ("--parquet", parquet), ("--format", format_)) if on]
    if len(outputs) > 1:
        raise click.UsageError(f"{' and '.join(outputs)} exclude each other.")
    if viewed and (csv_ or parquet or format_ == "json"):
        raise click.UsageError(f"{outputs[0]} takes no views; for a table of one: --csv ranks.")
    if parquet is not None and output in {None, "-"}:
        raise click.UsageError("--parquet needs --output FILE.")


def _check_dump(dump: str) -> None:
    """A dump that was named and is not there is a mistake of the command line; one that is odd inside costs itself."""
    from topodiag.model.errors import InputError  # noqa: PLC0415

    if os.path.isdir(dump):
        raise InputError(dump, "is a folder, not a dump", hint=f"give it as PATH: topodiag logs {dump}")
    if not os.path.exists(dump):
        raise InputError(dump, "no such file", hint="--flight takes one dump; repeat it for each")
