"""`topodiag topo diff`: two machines compared by what matters to communication."""

from __future__ import annotations

import click

from topodiag.cli.errors import FOUND, Outcome
from topodiag.cli.options import Command, Printing, answer_options, nccl_option, options
from topodiag.cli.params import EVIDENCE


@click.command(cls=Command)
@click.argument("left", type=EVIDENCE)
@click.argument("right", type=EVIDENCE)
@options("buses", "nodes", nccl_option(), of="topo diff")
@answer_options()
@click.pass_obj
def diff(  # noqa: PLR0917 - one parameter per option
    reached: Outcome, left: str, right: str, buses: bool, nodes: int, nccl: str, printing: Printing
) -> None:
    """Compare two machines, for example a node with a healthy peer, and what NCCL chooses on each.

    Host hashes, GUIDs, ranks and PCI domains always differ and are ignored. Exit code 1: the machines differ.

    \b
    Example
      topodiag topo diff fixture:dgx-h100-healthy fixture:dgx-h100-gpu5-x4
    """
    from topodiag.app.topo import compare_topologies, result_of  # noqa: PLC0415
    from topodiag.cli.output import printable_with, write_answer  # noqa: PLC0415
    from topodiag.report.html.sections.picture import machines  # noqa: PLC0415
    from topodiag.report.topo.what_if import diff_json, draw_diff  # noqa: PLC0415

    answer = compare_topologies(left, right, buses=buses, nodes=nodes, version=nccl)
    names, (compared, sides) = printable_with([left, right], answer, redact=printing.redact)
    reached.code = FOUND if compared.differences else 0

    inputs = [piece for side in sides for piece in side.inputs]
    gaps = [*compared.not_compared, *(gap for side in sides for gap in side.not_observed)]
    write_answer(
        printing,
        "topo diff",
        lambda page: draw_diff(page, names, compared),
        lambda: diff_json(names, compared, inputs, gaps),
        lambda: result_of(*sides),
        lambda: machines(*(side.node for side in sides)),
    )
