"""`topodiag emit svg` and `topodiag emit dot`: a picture of the node."""

from __future__ import annotations

from collections.abc import Callable

import click

from topodiag.cli.params import PLACE


@click.command()
@click.argument("source", type=PLACE)
@click.option("--output", "-o", metavar="FILE", type=PLACE, help="Write to a file instead of standard output.")
def svg(source: str, output: str | None) -> None:
    """A picture of the node: sockets, switches, GPUs, NICs, the NVLink fabric; what the checks found is red.

    SOURCE is what `topodiag scan --from` takes: a bundle, a topology file, lstopo XML, pasted output, fixture:NAME.
    """
    from topodiag.app.picture import picture  # noqa: PLC0415
    from topodiag.emit.svg import to_svg  # noqa: PLC0415 - heavy from here on

    _write(output, lambda: to_svg(picture(source)))


@click.command()
@click.argument("source", type=PLACE)
@click.option("--output", "-o", metavar="FILE", type=PLACE, help="Write to a file instead of standard output.")
def dot(source: str, output: str | None) -> None:
    """The same picture for Graphviz: dot -Tsvg node.dot -o node.svg."""
    from topodiag.app.picture import picture  # noqa: PLC0415
    from topodiag.emit.dot import to_dot  # noqa: PLC0415 - heavy from here on

    _write(output, lambda: to_dot(picture(source)))


def _write(output: str | None, made: Callable[[], str]) -> None:
    from topodiag.cli.output import check_output, opened  # noqa: PLC0415

    check_output(output)
    text = made()
    with opened(output) as stream:
        stream.write(text)
        stream.flush()
