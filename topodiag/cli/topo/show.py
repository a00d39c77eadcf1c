"""`topodiag topo show`: the machine of a topology, drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from topodiag.cli.command import Command
from topodiag.cli.options import Printing, format_option, html_option, page_options, redact_option
from topodiag.cli.params import EVIDENCE

if TYPE_CHECKING:
    from topodiag.report.documents.types.result import ResultDocument


@click.command(cls=Command)
@click.argument("file", type=EVIDENCE)
@format_option()
@html_option
@redact_option
@page_options
def show(file: str, format_: str, html: str | None, redact: bool, printing: Printing) -> None:
    """Draw the tree of a topology: NUMA nodes, switches, GPUs, NICs, and the path between every two of them."""
    from topodiag.app.scan import scan  # noqa: PLC0415
    from topodiag.cli.html import as_shown, check_html, machines_of, write_drawn  # noqa: PLC0415
    from topodiag.cli.output import check_output, write_page  # noqa: PLC0415 - heavy from here on
    from topodiag.report.formats.json_report import document  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415
    from topodiag.report.topo.show import draw_machine  # noqa: PLC0415

    check_output(printing.output)
    check_html(html, [file], printing)
    result = as_shown(scan([file]), redact=redact)
    machines = replace(result, findings=(), outcomes=())

    def draw(page: Page) -> None:
        for node in result.nodes:
            draw_machine(page, result, node)

    def dump() -> ResultDocument:
        return document(machines)

    write_page(draw, dump, format_=format_, printing=printing)
    write_drawn(html, "topo show", draw, dump, lambda: replace(machines, nodes=()), machines_of(*result.nodes))
