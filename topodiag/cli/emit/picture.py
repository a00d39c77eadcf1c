"""`topodiag emit svg` and `topodiag emit dot`: a picture of the node."""

from __future__ import annotations

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
