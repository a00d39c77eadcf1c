"""`topodiag topo show`: the machine of a topology, drawn."""

from __future__ import annotations

import click

from topodiag.cli.params import PLACE
from topodiag.cli.topo_options import style_options


@click.command()
@click.argument("file", type=PLACE)
@style_options
def show(  # noqa: PLR0917 - one parameter per option
    file: str, output: str | None, color: str, ascii_only: bool, width: int | None, quiet: bool, verbose: int
) -> None:
    """Draw the tree of a topology: NUMA nodes, switches, GPUs, NICs, and the path between every two of them."""
    from topodiag.cli.output import check_output, opened  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.terminal import style_for  # noqa: PLC0415
    from topodiag.pipeline import diagnose  # noqa: PLC0415
    from topodiag.report.page import print_page  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415
    from topodiag.report.topo_show import draw_machine  # noqa: PLC0415

    check_output(output)
    result = diagnose([file])
    with opened(output) as stream:
        page = Page(style_for(stream, color=color, ascii_only=ascii_only, width=width, verbose=verbose, quiet=quiet))
        for node in result.nodes:
            draw_machine(page, result, node)
        print_page(page, stream)
        stream.flush()
