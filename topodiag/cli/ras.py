"""`topodiag ras`: ask NCCL's RAS of a running job who the others wait for."""

from __future__ import annotations

from os.path import exists

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.options import Command, Printing, options, report_options


@click.command(cls=Command)
@click.argument("places", metavar="HOST[:PORT]...", nargs=-1)
@options("paths", "times", "keep", of="ras")
@report_options()
@click.pass_obj
def ras(  # noqa: PLR0917 - one parameter per option
    reached: Outcome, places: tuple[str, ...], paths: tuple[str, ...], times: int, keep: str | None, printing: Printing
) -> None:
    """Ask NCCL's RAS of a running job, and say which rank the others wait for.

    HOST is a node of the job (default: localhost); PORT is 28028 unless NCCL_RAS_ADDR sets another one. topodiag asks
    twice, because the counts of a job that runs grow between two answers. Name two hosts to see both sides of a network
    that may be cut. The job is not disturbed.

    \b
    Examples
      topodiag ras
      topodiag ras gpu07 gpu08 --with logs/
      ncclras -f json > answer.json; topodiag logs answer.json
    """
    from topodiag.app.case.ras import Asking  # noqa: PLC0415
    from topodiag.app.logs import ras as judge  # noqa: PLC0415
    from topodiag.cli.output import printable, verdict, write_report  # noqa: PLC0415 - heavy from here on
    from topodiag.report.job.table import draw_logs  # noqa: PLC0415

    quiet = printing.quiet
    if path := next((place for place in places if exists(place)), ""):
        raise click.UsageError(f"{path} is a path, and ras asks hosts. Answers that were kept: topodiag logs {path}")
    result = judge(
        places or ("localhost",),
        paths,
        asking=Asking(times, save=keep),
        tell=lambda words: None if quiet else click.echo(words, err=True),
    )
    result = printable(result, redact=printing.redact)
    reached.code = verdict(result, printing.fail_on)
    write_report(printing, "ras", result, draw_logs)
