"""`topodiag emit nccl-conf`: an nccl.conf with the settings that follow from findings."""

from __future__ import annotations

import sys

import click

from topodiag.cli.command import Command
from topodiag.cli.options import log_option, output_option
from topodiag.cli.params import EVIDENCE


@click.command("nccl-conf", cls=Command)
@click.argument("sources", metavar="[SOURCE]...", nargs=-1, type=EVIDENCE)
@log_option
@output_option
def nccl_conf(sources: tuple[str, ...], logs: tuple[str, ...], output: str | None) -> None:
    """Write the nccl.conf that follows from findings: of bundles or fixture:NAME, of a job's logs, or of this node.

    The file names the compute NICs where NCCL would use others too, and the interface of the default route. It corrects
    lines that NCCL does not read as meant, and takes out harmful settings, each with its reason. A file cannot undo a
    variable of the environment: a note names it. Without findings that lead to a line, no file is written.
    """
    from topodiag.app.emit_conf import make_conf_file  # noqa: PLC0415
    from topodiag.cli.html import as_shown  # noqa: PLC0415
    from topodiag.cli.output import check_output, opened  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.terminal import style_for  # noqa: PLC0415
    from topodiag.report.emit.conf import draw_conf  # noqa: PLC0415
    from topodiag.report.page import print_page  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    check_output(output)
    made = as_shown(make_conf_file(sources, logs), redact=False)
    page = Page(style_for(sys.stderr))
    draw_conf(page, made.advice, None if output == "-" else output)
    print_page(page, sys.stderr)
    if made.text:
        with opened(output) as stream:
            stream.write(made.text)
            stream.flush()
