"""`topodiag emit picture`: a picture of the node, in the format of the file's suffix."""

from __future__ import annotations

import os
import sys

import click

from topodiag.cli.options import Command, options
from topodiag.cli.params import EVIDENCE

FORMATS = ("svg", "png", "pdf", "dot")


@click.command(cls=Command)
@click.argument("source", type=EVIDENCE)
@options("output")
def picture(source: str, output: str | None) -> None:
    """Draw the node: sockets, switches, GPUs, NICs, NVLinks. Faults are red.

    SOURCE is what `topodiag scan` reads: a bundle, a topology file, lstopo XML, pasted output, fixture:NAME. The suffix
    of FILE chooses the format: .svg, .dot for Graphviz, or .png and .pdf after `pip install 'topodiag[pictures]'`.
    Without FILE, standard output gets SVG.

    \b
    Examples
      topodiag emit picture gpu07.tar.gz -o gpu07.svg
      topodiag emit picture fixture:dgx-h100-healthy -o node.png
    """
    from topodiag.app.scan import pictured  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.output import printable, write_bytes  # noqa: PLC0415
    from topodiag.report.emit.picture import titled_picture  # noqa: PLC0415

    format_ = _format_of(output)
    title = titled_picture(*printable(pictured(source), redact=False))
    if format_ == "dot":
        from topodiag.emit.dot import to_dot  # noqa: PLC0415

        data = to_dot(title).encode()
    else:
        from topodiag.draw.node import draw_node  # noqa: PLC0415

        drawn = draw_node(title)
        data = drawn.encode() if format_ == "svg" else _raster(drawn, format_)
    write_bytes(output, data)


def _format_of(output: str | None) -> str:
    if output is None or output == "-":
        if sys.stdout.isatty():
            raise click.UsageError("Name a file: -o node.svg, .png, .pdf or .dot.")
        return "svg"
    suffix = os.path.splitext(output)[1].lower().removeprefix(".")
    if suffix not in FORMATS:
        raise click.UsageError(f"{output!r}: the suffix is the format: .svg, .png, .pdf or .dot.")
    return suffix


def _raster(svg: str, format_: str) -> bytes:
    from topodiag.emit.raster import to_pdf, to_png  # noqa: PLC0415 - needs an extra

    return to_png(svg) if format_ == "png" else to_pdf(svg)
