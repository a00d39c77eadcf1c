"""`topodiag topo show`: the machine of a topology, drawn."""

from __future__ import annotations

import click

from topodiag.cli.former import Command
from topodiag.cli.options import Printing, page_options
from topodiag.cli.params import EVIDENCE


@click.command(cls=Command)
@click.argument("file", type=EVIDENCE)
@page_options
def show(file: str, printing: Printing) -> None:
    """Draw the tree of a topology: NUMA nodes, switches, GPUs, NICs, and the path between every two of them."""
    from topodiag.app.scan import scan  # noqa: PLC0415
    from topodiag.cli.output import check_output, opened  # noqa: PLC0415 - heavy from here on
    from topodiag.report.page import print_page  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415
    from topodiag.report.topo.show import draw_machine  # noqa: PLC0415

    check_output(printing.output)
    result = scan([file])
    with opened(printing.output) as stream:
        page = Page(printing.style(stream))
        for node in result.nodes:
            draw_machine(page, result, node)
        print_page(page, stream)
        stream.flush()
