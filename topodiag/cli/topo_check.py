"""`topodiag topo check`: would NCCL load this file, is it whole, and is it this machine?"""

from __future__ import annotations

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.params import PLACE, format_option, report_options
from topodiag.cli.topo_options import any_nccl_option


@click.command()
@click.argument("file", type=PLACE)
@any_nccl_option
@click.option("--against", metavar="SOURCE", type=PLACE, help="A bundle, an NCCL log or another file of the machine.")
@format_option
@report_options
@click.pass_obj
def check(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    file: str,
    version: str,
    against: str | None,
    format_: str,
    output: str | None,
    fail_on: str,
    color: str,
    ascii_only: bool,
    width: int | None,
    quiet: bool,
    verbose: int,
) -> None:
    """Would NCCL load this topology file, is it whole, and is it this machine?

    What it refuses is said with the line and in NCCL's own words. Without --nccl all versions from 2.18 to 2.30 are
    asked.
    """
    from topodiag.cli.output import check_output, opened, verdict  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.terminal import style_for  # noqa: PLC0415
    from topodiag.pipeline_topo import check_topology  # noqa: PLC0415
    from topodiag.report.registry import report  # noqa: PLC0415
    from topodiag.report.topo_check import TopoCheck  # noqa: PLC0415

    if file == against == "-":
        raise click.UsageError("Standard input can be read only once.")
    check_output(output)
    result = check_topology(file, version=version, against=against)
    reached.code = verdict(result, fail_on)
    with opened(output) as stream:
        style = style_for(stream, color=color, ascii_only=ascii_only, width=width, verbose=verbose, quiet=quiet)
        made = report("json") if format_ == "json" else TopoCheck()
        made.render(result, stream, style)
        stream.flush()
