"""`topodiag emit nccl-conf`: an nccl.conf with the settings that follow from findings."""

from __future__ import annotations

import click

from topodiag.cli.options import Command, options
from topodiag.cli.params import EVIDENCE


@click.command("nccl-conf", cls=Command)
@click.argument("sources", metavar="[SOURCE]...", nargs=-1, type=EVIDENCE)
@options("logs", "output")
def nccl_conf(sources: tuple[str, ...], logs: tuple[str, ...], output: str | None) -> None:
    """Write an nccl.conf that fixes the findings of this node, of bundles or of a job's logs.

    The file names the compute NICs if NCCL would also use others, and the interface of the default route. It corrects
    lines that NCCL misreads and removes harmful settings; a comment gives the reason for each. A file cannot override
    an environment variable: a note names the variable to unset. If no finding needs a line, no file is written.

    SOURCE is a bundle or fixture:NAME; without SOURCE and --log, this node.

    \b
    Example
      topodiag emit nccl-conf fixture:dgx-h100-gpu5-x4 -o nccl.conf
    """
    from topodiag.app.judge.conf_file import make_conf_file  # noqa: PLC0415
    from topodiag.cli.output import draw_note, printable, write_text  # noqa: PLC0415 - heavy from here on
    from topodiag.report.emit.files import draw_conf  # noqa: PLC0415

    conf_file = printable(make_conf_file(sources, logs), redact=False)
    draw_note(lambda page: draw_conf(page, conf_file.advice, None if output == "-" else output))
    if conf_file.text:
        write_text(output, conf_file.text)
