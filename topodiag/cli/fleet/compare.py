"""`topodiag fleet compare`: many captures beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.options import Command, Printing, options, report_options
from topodiag.cli.params import EVIDENCE

if TYPE_CHECKING:
    from topodiag.model.fleet import FleetResult

FORMATS = ("table", "json", "jsonl", "csv", "parquet", "drain", "conditions")


@click.command(cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=EVIDENCE)
@options("pass_list", "fail_list", "workers", "dask", of="fleet compare")
@report_options(FORMATS)
@click.pass_obj
def compare(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    paths: tuple[str, ...],
    pass_list: str | None,
    fail_list: str | None,
    workers: int | None,
    dask: str | None,
    printing: Printing,
) -> None:
    """Compare the nodes of a fleet with their peers, and say which to exclude now and why.

    PATH is a folder of captures, or whatever `topodiag scan` reads; the latest capture of a host counts. Nodes are
    compared with nodes of the same kind: the same product, GPU and role. The report shows equal findings of many nodes
    once, the values that all nodes share, the nodes that differ from the majority, and groups of equal nodes.

    --format jsonl writes a line per node, csv and parquet a row per finding of a node, drain the commands for Slurm,
    conditions those of node-problem-detector. The fail list fits srun --exclude=$(cat FILE). Exit code 1: a node is to
    be excluded, or a finding reaches --fail-on.

    \b
    Examples
      topodiag fleet compare captures/
      topodiag fleet compare captures/ --fail-list bad --pass-list good
      topodiag fleet compare captures/ --format drain
    """
    if printing.format_ == "parquet" and printing.output in {None, "-"}:
        raise click.UsageError("--format parquet needs --output FILE.")
    from topodiag.fleet.cores import one_thread  # noqa: PLC0415

    one_thread()
    from topodiag.app.compare import compare as compared  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.output import fleet_verdict, printable  # noqa: PLC0415
    from topodiag.cli.progress import reading  # noqa: PLC0415

    with reading(printing, "captures", "comparing", "MofNCompleteColumn") as tell:
        result = compared(paths, workers=workers, dask=dask, on_read=tell)
    reached.code = fleet_verdict(result, printing.fail_on)
    result = printable(result, redact=printing.redact)
    _write_lists(result, pass_list, fail_list)
    _write_answer(result, printing)
    _write_rows(result, printing)


def _write_lists(result: FleetResult, pass_list: str | None, fail_list: str | None) -> None:
    from topodiag.cli.output import write_text  # noqa: PLC0415
    from topodiag.emit import fleet_lists  # noqa: PLC0415

    texts = (pass_list, fleet_lists.pass_list(result)), (fail_list, fleet_lists.node_list(result.failed))
    for path, text in texts:
        if path is not None:
            write_text(path, text)


def _write_answer(result: FleetResult, printing: Printing) -> None:
    from topodiag.cli.output import write_answer  # noqa: PLC0415
    from topodiag.model.result import Result  # noqa: PLC0415
    from topodiag.report.fleet.page import draw_fleet, fleet_json  # noqa: PLC0415
    from topodiag.report.html.fleet import fleet_extras  # noqa: PLC0415

    shown = Result(
        inputs=result.inputs, findings=result.findings, outcomes=result.outcomes, not_observed=result.left_out,
        unexplained=result.unexplained,
    )  # fmt: skip
    write_answer(
        printing, "fleet compare", lambda page: draw_fleet(page, result), lambda: fleet_json(result), lambda: shown,
        lambda: fleet_extras(result),
    )  # fmt: skip


def _write_rows(result: FleetResult, printing: Printing) -> None:
    """The formats of lines and rows: a line or more for each node."""
    if printing.format_ in {"table", "json"}:
        return
    from topodiag.cli.output import opened, write_table  # noqa: PLC0415
    from topodiag.emit.fleet_lists import conditions, drain_lines  # noqa: PLC0415
    from topodiag.report.fleet.page import COLUMNS, json_lines, rows  # noqa: PLC0415

    if printing.format_ in {"csv", "parquet"}:
        write_table(printing.output, COLUMNS, rows(result), parquet=printing.format_ == "parquet")
        return
    lines = {"jsonl": json_lines, "drain": drain_lines, "conditions": conditions}[printing.format_]
    with opened(printing.output) as stream:
        stream.writelines(f"{line}\n" for line in lines(result))
