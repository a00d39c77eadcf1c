"""`topodiag model collective`: a collective under two placements."""

from __future__ import annotations

import click

from topodiag.cli.model.options import MachineOptions, machine_options
from topodiag.cli.options import Command, Printing, options, plot_options

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "send_recv")


@click.command(cls=Command)
@click.argument("collective", type=click.Choice(COLLECTIVES), default="all_reduce", metavar="COLLECTIVE")
@options("size", "placement", "against", "algo", "measured", machine_options(), "sizes", of="model collective")
@plot_options
def collective(  # noqa: PLR0917 - one parameter per option
    collective: str,
    size: int,
    placement: tuple[int, float] | None,
    against: tuple[int, float] | None,
    algo: str,
    measured: float | None,
    asked: MachineOptions,
    sizes: tuple[int, ...],
    svg: str | None,
    explain: bool,
    printing: Printing,
) -> None:
    """Compare a collective under two placements: time, bandwidth and limit of each, and what the better one gains.

    COLLECTIVE is all_reduce (the default), all_gather, reduce_scatter, broadcast, reduce, all_to_all or send_recv. With
    --measured the report says which placement explains the measured time.

    \b
    Example
      topodiag model collective all_reduce --placement 2x8 --versus 16x1
    """
    from topodiag.app.model import ask_collective  # noqa: PLC0415
    from topodiag.cli.model.options import draw_or_dump  # noqa: PLC0415 - heavy from here on
    from topodiag.report.model.collective import draw_placements, placement_series, placements_json  # noqa: PLC0415

    nodes = max(placement[0] if placement else 1, against[0] if against else 1)
    machine = asked.of_nodes(max(nodes, 2))
    placements, reading = ask_collective(
        machine, collective, size, algorithm=algo, measured_us=measured,
        placement=(placement[0], int(placement[1])) if placement else None,
        against=(against[0], int(against[1])) if against else None,
    )  # fmt: skip
    inputs = {"collective": collective, "size": size, "algorithm": algo, "measured_us": measured}

    draw_or_dump(
        lambda page: draw_placements(page, placements, machine, sizes, reading, explain=explain),
        lambda: placements_json(placements, machine, reading, inputs),
        printing=printing, svg=svg, series=lambda: placement_series(placements, sizes),
        title=f"{collective} on {machine.name}",
    )  # fmt: skip
