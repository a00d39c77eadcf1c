"""`topodiag topo show`: the machine of a topology, drawn."""

from __future__ import annotations

from dataclasses import replace

import click

from topodiag.cli.options import Command, Printing, answer_options
from topodiag.cli.params import EVIDENCE


@click.command(cls=Command)
@click.argument("file", type=EVIDENCE)
@answer_options()
def show(file: str, printing: Printing) -> None:
    """Draw the tree of a topology: NUMA nodes, switches, GPUs, NICs, and the path between each pair.

    \b
    Example
      topodiag topo show fixture:dgx-h100-healthy
    """
    from topodiag.app.scan import scan  # noqa: PLC0415
    from topodiag.cli.output import printable, write_answer  # noqa: PLC0415
    from topodiag.report.formats.json import document  # noqa: PLC0415
    from topodiag.report.html.sections.picture import machines  # noqa: PLC0415
    from topodiag.report.table import draw_machine  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    result = printable(scan([file]), redact=printing.redact)
    unjudged = replace(result, findings=(), outcomes=())

    def draw(page: Page) -> None:
        for node in result.nodes:
            draw_machine(page, result, node)

    write_answer(
        printing,
        "topo show",
        draw,
        lambda: document(unjudged),
        lambda: replace(unjudged, nodes=()),
        lambda: machines(*result.nodes),
    )
