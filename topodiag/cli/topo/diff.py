"""`topodiag topo diff`: two machines compared by what matters to communication."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.command import Command
from topodiag.cli.errors import FOUND, Outcome
from topodiag.cli.options import (
    Printing,
    format_option,
    html_option,
    nccl_option,
    nodes_option,
    page_options,
    redact_option,
)
from topodiag.cli.params import EVIDENCE

if TYPE_CHECKING:
    from topodiag.report.documents.types.topo import DiffDocument


@click.command(cls=Command)
@click.argument("left", type=EVIDENCE)
@click.argument("right", type=EVIDENCE)
@click.option("--buses", is_flag=True, help="Compare bus ids too.")
@nodes_option(1)
@nccl_option()
@format_option()
@html_option
@redact_option
@page_options
@click.pass_obj
def diff(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    left: str,
    right: str,
    buses: bool,
    nodes: int,
    version: str,
    format_: str,
    html: str | None,
    redact: bool,
    printing: Printing,
) -> None:
    """Compare two machines, or a machine with its healthy peer, and what NCCL finds on either.

    Host hashes, GUIDs, ranks and PCI domains differ by nature and are ignored. Exit code 1: the machines differ.
    """
    from topodiag.app.topo import compare_topologies, result_of  # noqa: PLC0415
    from topodiag.cli.html import as_shown_with, check_html, machines_of, write_drawn  # noqa: PLC0415
    from topodiag.cli.output import check_output, write_page  # noqa: PLC0415 - heavy from here on
    from topodiag.report.text import Page  # noqa: PLC0415
    from topodiag.report.topo.diff import diff_json, draw_diff  # noqa: PLC0415

    if left == right == "-":
        raise click.UsageError("Standard input can be read only once.")
    check_output(printing.output)
    check_html(html, [left, right], printing)
    answer = compare_topologies(left, right, buses=buses, nodes=nodes, version=version)
    (first, second), answer = as_shown_with([left, right], answer, redact=redact)
    found, made = answer.differences, answer.predictions
    reached.code = FOUND if found else 0

    def draw(page: Page) -> None:
        draw_diff(page, (first, second), found, made, answer.not_compared)

    def dump() -> DiffDocument:
        return diff_json(
            (first, second), found, made,
            inputs=[piece for side in answer.sides for piece in side.inputs],
            not_observed=[*answer.not_compared, *(gap for side in answer.sides for gap in side.not_observed)],
        )  # fmt: skip

    write_page(draw, dump, format_=format_, printing=printing)
    nodes_ = [side.node for side in answer.sides]
    write_drawn(html, "topo diff", draw, dump, lambda: result_of(*answer.sides), machines_of(*nodes_))
