"""`topodiag emit svg`, `png`, `pdf` and `dot`: a picture of the node."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from topodiag.cli.former import Command
from topodiag.cli.options import output_option
from topodiag.cli.params import EVIDENCE

if TYPE_CHECKING:
    from topodiag.draw.picture import Picture


@click.command(cls=Command)
@click.argument("source", type=EVIDENCE)
@output_option
def svg(source: str, output: str | None) -> None:
    """Draw a picture of the node: sockets, switches, GPUs, NICs, the NVLink fabric. Faults are red.

    SOURCE is what `topodiag scan` takes: a bundle, a topology file, lstopo XML, pasted output, fixture:NAME.
    """
    from topodiag.draw.node import draw_node  # noqa: PLC0415 - heavy from here on

    _write(output, source, draw_node)


@click.command(cls=Command)
@click.argument("source", type=EVIDENCE)
@output_option
def png(source: str, output: str | None) -> None:
    """Draw the picture of `topodiag emit svg` as PNG. Needs: pip install 'topodiag[pictures]'."""
    from topodiag.emit.raster import to_png  # noqa: PLC0415 - heavy from here on

    _write_bytes(output, source, to_png)


@click.command(cls=Command)
@click.argument("source", type=EVIDENCE)
@output_option
def pdf(source: str, output: str | None) -> None:
    """Draw the picture of `topodiag emit svg` as PDF. Needs: pip install 'topodiag[pictures]'."""
    from topodiag.emit.raster import to_pdf  # noqa: PLC0415 - heavy from here on

    _write_bytes(output, source, to_pdf)


@click.command(cls=Command)
@click.argument("source", type=EVIDENCE)
@output_option
def dot(source: str, output: str | None) -> None:
    """Draw a picture of the node for Graphviz: dot -Tsvg node.dot -o node.svg."""
    from topodiag.emit.dot import to_dot  # noqa: PLC0415 - heavy from here on

    _write(output, source, to_dot)


def _write(output: str | None, source: str, spelt: Callable[[Picture], str]) -> None:
    from topodiag.app.picture import pictured  # noqa: PLC0415
    from topodiag.cli.output import check_output, opened  # noqa: PLC0415
    from topodiag.report.emit.picture import titled_picture  # noqa: PLC0415

    check_output(output)
    text = spelt(titled_picture(*pictured(source)))
    with opened(output) as stream:
        stream.write(text)
        stream.flush()


def _write_bytes(output: str | None, source: str, converted: Callable[[str], bytes]) -> None:
    from topodiag.app.picture import pictured  # noqa: PLC0415
    from topodiag.cli.output import check_output, opened_raw  # noqa: PLC0415
    from topodiag.draw.node import draw_node  # noqa: PLC0415
    from topodiag.report.emit.picture import titled_picture  # noqa: PLC0415

    check_output(output)
    if (output is None or output == "-") and sys.stdout.isatty():
        raise click.UsageError("a picture would spoil the terminal: name a file with --output")
    made = converted(draw_node(titled_picture(*pictured(source))))
    with opened_raw(output) as stream:
        stream.write(made)
        stream.flush()
