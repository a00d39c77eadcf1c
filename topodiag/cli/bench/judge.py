"""`topodiag bench PATH...`: measured collectives against what the machine should reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.options import Command, Printing, nccl_option, on_command_line, options, report_options, value_options
from topodiag.cli.params import EVIDENCE

if TYPE_CHECKING:
    from topodiag.app.judge.runs import BenchOptions
    from topodiag.model.result import Result
    from topodiag.report.text import Page


TABLES = ("rows",)


def _asked(**given: Any) -> BenchOptions:
    from topodiag.app.judge.runs import BenchOptions  # noqa: PLC0415 - heavy

    return BenchOptions(**given)


_OPTIONS = options(
    "machine", "system", "nics", "nodes", nccl_option(otherwise="what the output says"), "env", "gate", "by_file",
    "explain", of="bench",
)  # fmt: skip


@click.command(cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=EVIDENCE)
@value_options("asked", _asked, _OPTIONS, ("machine", "system", "nics", "nodes", "nccl", "env", "by_file"))
@click.option(
    "--csv", "csv_", type=click.Choice(TABLES), metavar="TABLE", help="Write a table as CSV: rows (all runs)."
)
@options("svg")
@report_options()
@click.pass_obj
def judge(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    paths: tuple[str, ...],
    asked: BenchOptions,
    gate: bool,
    explain: bool,
    csv_: str | None,
    svg: str | None,
    printing: Printing,
) -> None:
    """Check whether a measured bandwidth is normal, and what explains it if not.

    PATH is output of nccl-tests (what *_perf printed, or its -J FILE), a folder, a pattern, or -; .gz and .zst are
    unpacked. Bundles, topology files and NCCL logs among the paths describe the machine; where its nodes differ, the
    slowest node counts. Without them the machine is --system, the NCCL log in the same file, or what the output names.
    With --nics alone, only traffic between nodes is checked.
    """
    _refuse(asked, csv_, gate=gate)
    from topodiag.app.bench import bench  # noqa: PLC0415
    from topodiag.cli.output import opened, printable, verdict, write_result, write_result_page  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.progress import working  # noqa: PLC0415

    with working(printing):
        result = printable(bench(paths, options=asked), redact=printing.redact)
    reached.code = verdict(result, printing.fail_on)
    if svg is not None:
        _write_svg(svg, result)

    def draw(page: Page, result: Result) -> None:
        from topodiag.report.bench.table import draw_bench  # noqa: PLC0415 - only where it is asked for

        draw_bench(page, result, explain=explain)

    write_result_page(printing, "bench", result, draw)
    if gate:
        _write_gate(reached, result, paths, printing)
    if csv_ is not None:
        from topodiag.report.bench.json import write_bench_csv  # noqa: PLC0415

        with opened(printing.output) as stream:
            write_bench_csv(result, stream)
    elif not gate or printing.format_ == "json":
        write_result(result, printing, draw)


def _refuse(asked: BenchOptions, csv_: str | None, *, gate: bool) -> None:
    if csv_ and on_command_line("format_"):
        raise click.UsageError("--csv and --format exclude each other.")
    if asked.machine and asked.system is not None:
        raise click.UsageError("--machine and --system exclude each other.")
    if asked.machine and asked.nics is not None:
        raise click.UsageError("--machine and --nics exclude each other: a machine has its own NICs.")
    if gate and csv_:
        raise click.UsageError("--gate and --csv exclude each other.")


def _write_svg(path: str, result: Result) -> None:
    from topodiag.cli.output import write_svg  # noqa: PLC0415
    from topodiag.draw.plot import plot_svg  # noqa: PLC0415
    from topodiag.draw.scale import SIZE  # noqa: PLC0415
    from topodiag.report.bench.plot import AXIS, series_of, title_of  # noqa: PLC0415

    (series, marks), title = series_of(result.benchmarks, single=True), title_of(result.benchmarks)
    write_svg(path, plot_svg(series, x=SIZE, y=AXIS, title=title, marks=marks))


def _write_gate(reached: Outcome, result: Result, paths: tuple[str, ...], printing: Printing) -> None:
    """Acceptance asks for a pass of every file, whatever --fail-on says."""
    from topodiag.app.judge.runs import gates  # noqa: PLC0415
    from topodiag.cli.errors import CLEAN, FOUND  # noqa: PLC0415
    from topodiag.cli.output import write_drawing  # noqa: PLC0415
    from topodiag.model.bench import GateState  # noqa: PLC0415
    from topodiag.report.bench.table import draw_gate  # noqa: PLC0415

    listed = gates(result, paths)
    reached.code = CLEAN if all(gate.state is GateState.PASS for gate in listed) else FOUND
    if printing.format_ == "table":
        write_drawing(lambda page: draw_gate(page, listed), printing)
