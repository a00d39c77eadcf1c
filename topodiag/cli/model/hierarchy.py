"""`topodiag model hierarchy`: flat against hierarchical all-reduce."""

from __future__ import annotations

import click

from topodiag.cli.model.options import MachineOptions, machine_options
from topodiag.cli.options import Command, Printing, options, plot_options


@click.command(cls=Command)
@options("nodes", "size", "sizes", machine_options(), of="model hierarchy")
@plot_options
def hierarchy(  # noqa: PLR0917 - one parameter per option
    nodes: int,
    size: int,
    sizes: tuple[int, ...],
    asked: MachineOptions,
    svg: str | None,
    explain: bool,
    printing: Printing,
) -> None:
    """Compare flat and hierarchical all-reduce by size: what each gains, and what limits it, latency or bandwidth.

    \b
    Example
      topodiag model hierarchy --system dgx-h100 --nodes 8
    """
    from topodiag.app.model import ask_hierarchy  # noqa: PLC0415
    from topodiag.cli.model.options import draw_or_dump  # noqa: PLC0415 - heavy from here on
    from topodiag.report.model.collective import (  # noqa: PLC0415
        draw_hierarchy,
        hierarchy_json,
        hierarchy_marks,
        hierarchy_series,
    )

    machine = asked.of_nodes(nodes)
    answer = ask_hierarchy(machine)
    inputs = {"nodes": nodes, "size": size}

    draw_or_dump(
        lambda page: draw_hierarchy(page, answer, machine, size, sizes, explain=explain),
        lambda: hierarchy_json(answer, machine, size, sizes, inputs),
        printing=printing,
        svg=svg,
        series=lambda: hierarchy_series(answer, sizes),
        marks=lambda: hierarchy_marks(answer),
        title=f"all_reduce over {machine.gpus} GPUs, {machine.name}",
    )
