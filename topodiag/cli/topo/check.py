"""`topodiag topo check`: would NCCL load this file, is it whole, and is it this machine?"""

from __future__ import annotations

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.options import Command, Printing, nccl_option, options, report_options
from topodiag.cli.params import EVIDENCE


@click.command(cls=Command)
@click.argument("file", type=EVIDENCE)
@options(nccl_option(otherwise="all of them"), "against", of="topo check")
@report_options()
@click.pass_obj
def check(reached: Outcome, file: str, nccl: str, against: str | None, printing: Printing) -> None:
    """Check whether NCCL loads this topology file, whether the file is complete, and whether it fits the machine.

    Where NCCL refuses the file, the report shows the line and NCCL's message. Without --nccl the file is checked for
    all known versions.
    """
    from topodiag.app.topo import check_topology  # noqa: PLC0415
    from topodiag.cli.output import printable, verdict, write_report  # noqa: PLC0415 - heavy from here on
    from topodiag.report.topo.check import draw_check  # noqa: PLC0415

    result = printable(check_topology(file, version=nccl, against=against), redact=printing.redact)
    reached.code = verdict(result, printing.fail_on)
    write_report(printing, "topo check", result, draw_check)
