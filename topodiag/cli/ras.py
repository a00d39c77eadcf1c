"""`topodiag ras`: ask NCCL's RAS of a running job who the others wait for."""

from __future__ import annotations

import click

from topodiag.cli.command import Command
from topodiag.cli.errors import Outcome
from topodiag.cli.options import Printing, format_option, html_option, redact_option, report_options
from topodiag.cli.params import EVIDENCE, Count

FORMATS = ("table", "json")


@click.command(cls=Command)
@click.argument("places", metavar="HOST[:PORT]...", nargs=-1)
@click.option(
    "--with", "paths", metavar="PATH", type=EVIDENCE, multiple=True,
    help="Logs of the job, which name its ranks; may be given several times.",
)  # fmt: skip
@click.option("--times", metavar="N", type=Count(1, 1000), default=2, help="Answers, ten seconds apart (default: 2).")
@click.option("--to", "keep", metavar="DIR", type=click.Path(file_okay=False), help="Keep the answers in this folder.")
@format_option(FORMATS)
@html_option
@redact_option
@report_options
@click.pass_obj
def ras(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    places: tuple[str, ...],
    paths: tuple[str, ...],
    times: int,
    keep: str | None,
    printing: Printing,
) -> None:
    """Ask NCCL's RAS of a running job, and say which rank the others wait for.

    HOST is a node of the job, localhost unless given; the port is 28028 unless NCCL_RAS_ADDR sets another one. RAS
    counts launches, and a job that runs shows other counts each time: it is asked twice. Two hosts show both sides of
    a network that is cut. The job is not disturbed.

    \b
    Examples
      topodiag ras
      topodiag ras gpu07 gpu08 --with logs/
      ncclras -f json > answer.json; topodiag logs answer.json
    """
    from topodiag.app.case.ras import Asking  # noqa: PLC0415
    from topodiag.app.logs import ras as judge  # noqa: PLC0415
    from topodiag.cli.html import as_shown, check_written, write_result_page  # noqa: PLC0415
    from topodiag.cli.output import verdict, write_result  # noqa: PLC0415 - heavy from here on
    from topodiag.report.job.table import JobTable  # noqa: PLC0415

    check_written(printing, paths)
    quiet = printing.quiet
    result = judge(
        places or ("localhost",),
        paths,
        asking=Asking(times, save=keep),
        tell=lambda words: None if quiet else click.echo(words, err=True),
    )
    result = as_shown(result, redact=printing.redact)
    reached.code = verdict(result, printing.fail_on)
    write_result(result, printing, JobTable)
    write_result_page(printing, "ras", result, JobTable)
