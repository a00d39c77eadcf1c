"""`topodiag topo check`: would NCCL load this file, is it whole, and is it this machine?"""

from __future__ import annotations

import click

from topodiag.cli.command import Command
from topodiag.cli.errors import Outcome
from topodiag.cli.options import Printing, format_option, html_option, nccl_option, redact_option, report_options
from topodiag.cli.params import EVIDENCE


@click.command(cls=Command)
@click.argument("file", type=EVIDENCE)
@nccl_option(otherwise="all of them")
@click.option(
    "--against",
    metavar="SOURCE",
    type=EVIDENCE,
    help="Evidence of the machine to compare the file with: a bundle, an NCCL log, a file.",
)
@format_option()
@html_option
@redact_option
@report_options
@click.pass_obj
def check(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    file: str,
    version: str,
    against: str | None,
    format_: str,
    html: str | None,
    redact: bool,
    fail_on: str,
    printing: Printing,
) -> None:
    """Would NCCL load this topology file, is it whole, and is it this machine?

    A refusal is shown with its line and in NCCL's own words. Without --nccl the file is checked for all known versions.
    """
    from topodiag.app.topo import check_topology  # noqa: PLC0415
    from topodiag.cli.html import as_shown, check_html, write_result  # noqa: PLC0415
    from topodiag.cli.output import check_output, opened, verdict  # noqa: PLC0415 - heavy from here on
    from topodiag.report.registry import report  # noqa: PLC0415
    from topodiag.report.topo.check import TopoCheck  # noqa: PLC0415

    if file == against == "-":
        raise click.UsageError("Standard input can be read only once.")
    check_output(printing.output)
    check_html(html, [file] if against is None else [file, against], printing)
    result = as_shown(check_topology(file, version=version, against=against), redact=redact)
    reached.code = verdict(result, fail_on)
    with opened(printing.output) as stream:
        style = printing.style(stream)
        made = report("json") if format_ == "json" else TopoCheck()
        made.render(result, stream, style)
        stream.flush()
    if html is not None:
        write_result(html, "topo check", result, TopoCheck)
