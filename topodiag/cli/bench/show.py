"""`topodiag bench PATH...`: measured collectives against what the machine should reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.model.params import Pair
from topodiag.cli.params import PLACE, Count, Printing, report_options
from topodiag.cli.plotting import plot_option, write_plot
from topodiag.cli.topo.options import MAX_NODES, env_option, run_nccl_option

if TYPE_CHECKING:
    from topodiag.model.result import Result


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PLACE)
@click.option("--machine", metavar="PATH", type=PLACE, help="The machine: a bundle, a topology file or NCCL's log.")
@click.option("--system", metavar="NAME", help="The machine by name, as dgx-h100.")
@click.option(
    "--nics",
    type=Pair("NICs", "8x400", whole=False),
    metavar="COUNTxGBPS",
    help="NICs of a node, as 8x400, where they are not known.",
)
@click.option("--nodes", type=Count(1, MAX_NODES), metavar="N", help="Nodes of the run, where the output lacks them.")
@run_nccl_option
@env_option
@click.option("--by-file", is_flag=True, help="Each file is another placement of the same job.")
@click.option("--explain", is_flag=True, help="Show each term of the expectation.")
@click.option("--format", "format_", type=click.Choice(("table", "json")), help="Output format (default table).")
@click.option("--csv", "csv_", is_flag=True, help="The rows of all runs as CSV.")
@plot_option
@report_options
@click.pass_obj
def show(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    paths: tuple[str, ...],
    machine: str | None,
    system: str | None,
    nics: tuple[int, float] | None,
    nodes: int | None,
    version: str,
    env: dict[str, str],
    by_file: bool,
    explain: bool,
    format_: str | None,
    csv_: bool,
    plot: str | None,
    fail_on: str,
    printing: Printing,
) -> None:
    """Judge measured bandwidth: is it normal, and if not, what would explain it?

    PATH is output of nccl-tests (what *_perf printed, or its -J FILE), a folder, a pattern, or -; .gz and .zst are
    unpacked. The machine is --machine, --system, NCCL's log in the same file, or what the output itself tells; with
    --nics alone, what leaves a node is judged.
    """
    _refuse(paths, machine, system, nics, format_, csv_)
    from topodiag.app.bench import BenchOptions, bench  # noqa: PLC0415
    from topodiag.cli.output import check_output, verdict  # noqa: PLC0415 - heavy from here on

    check_output(printing.output)
    options = BenchOptions(
        machine=machine, system=system, nics=nics, nodes=nodes, nccl=version or None, env=env, by_file=by_file
    )
    result = bench(paths, options=options)
    reached.code = verdict(result, fail_on)
    if plot is not None:
        _write_plot(plot, result)
    _write(result, printing, format_=format_ or "table", csv_=csv_, explain=explain)


def _refuse(  # noqa: PLR0917 - options that exclude each other
    paths: tuple[str, ...],
    machine: str | None,
    system: str | None,
    nics: tuple[int, float] | None,
    format_: str | None,
    csv_: bool,
) -> None:
    if csv_ and format_ is not None:
        raise click.UsageError("--csv and --format exclude each other.")
    if machine is not None and system is not None:
        raise click.UsageError("--machine and --system exclude each other.")
    if machine is not None and nics is not None:
        raise click.UsageError("--machine and --nics exclude each other: a machine has its own NICs.")
    if (*paths, machine).count("-") > 1:
        raise click.UsageError("Standard input can be read only once.")


def _write_plot(path: str, result: Result) -> None:
    from topodiag.report.bench.plot import AXIS, series_of, title_of  # noqa: PLC0415
    from topodiag.report.plot.terminal import SIZE, plot_svg  # noqa: PLC0415

    (series, marks), title = series_of(result.benchmarks, alone=True), title_of(result.benchmarks)
    write_plot(path, lambda: plot_svg(series, x=SIZE, y=AXIS, title=title, marks=marks))


def _write(result: Result, printing: Printing, *, format_: str, csv_: bool, explain: bool) -> None:
    from topodiag.cli.output import opened  # noqa: PLC0415

    with opened(printing.output) as stream:
        if csv_:
            from topodiag.report.bench.rows import write_bench_csv  # noqa: PLC0415

            write_bench_csv(result, stream)
        elif format_ == "json":
            from topodiag.report.registry import report  # noqa: PLC0415

            report("json").render(result, stream, printing.style(stream))
        else:
            from topodiag.report.bench.table import BenchTable  # noqa: PLC0415

            BenchTable(explain=explain).render(result, stream, printing.style(stream))
        stream.flush()
