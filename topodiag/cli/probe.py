"""`topodiag probe`: the collector as one file, for nodes that have no topodiag."""

from __future__ import annotations

import os
import stat
import sys

import click

from topodiag.cli.options import Command, options


@click.command(cls=Command)
@options("output")
def probe(output: str | None) -> None:
    """Write the collector as one file, which any node with Python 3.6 can run.

    The file needs no topodiag, no root and no installation on the node. It writes a bundle, which topodiag reads.

    \b
    Example
      topodiag probe > topodiag-probe.pyz
      scp topodiag-probe.pyz gpu07:
      ssh gpu07 python3 topodiag-probe.pyz --output gpu07.tar.gz
      scp gpu07:gpu07.tar.gz .
      topodiag scan gpu07.tar.gz
    """
    from topodiag.cli.output import write_bytes  # noqa: PLC0415
    from topodiag.cli.terminal import is_terminal  # noqa: PLC0415
    from topodiag.fleet.collect.archive import archive  # noqa: PLC0415

    path = output or "-"
    if path == "-" and is_terminal(sys.stdout):
        raise click.UsageError("The collector is a binary file: write it with -o topodiag-probe.pyz.")
    write_bytes(path, archive())
    if path != "-" and os.path.isfile(path):
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
