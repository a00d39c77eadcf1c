"""`topodiag topo what-if`: before and after a fault, a repair or a setting, and the sentence for the data centre."""

from __future__ import annotations

import click

from topodiag.cli.command import Command
from topodiag.cli.errors import Outcome
from topodiag.cli.options import Printing, answer_options, nccl_option, options
from topodiag.cli.params import EVIDENCE


@click.command("what-if", cls=Command)
@click.argument("file", type=EVIDENCE)
@options(
    "down", "remove", "lanes", "speed", "rate", "off", "size", "nodes", nccl_option(), "env", of="topo what-if",
)  # fmt: skip
@answer_options()
@click.pass_obj
def what_if(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    file: str,
    down: tuple[str, ...],
    remove: tuple[str, ...],
    lanes: tuple[str, ...],
    speed: tuple[str, ...],
    rate: tuple[str, ...],
    off: tuple[str, ...],
    size: int,
    nodes: int,
    version: str,
    env: dict[str, str],
    printing: Printing,
) -> None:
    """Predict what a fault, a repair or a setting changes: channels, bandwidth, algorithm, and the time of an
    all-reduce.

    Changes are made in the order of the options below. --env sets the environment after the change only.

    \b
    Examples
      topodiag topo what-if fixture:dgx-h100-healthy --remove nic:mlx5_4
      topodiag topo what-if fixture:dgx-h100-healthy --lanes GPU5=4 --nodes 2
    """
    from topodiag.app.case.topology import open_topology  # noqa: PLC0415
    from topodiag.app.topo import ChangeError, changes_of, result_of  # noqa: PLC0415
    from topodiag.app.topo import what_if as ask  # noqa: PLC0415
    from topodiag.cli.html import as_shown_with, check_written, write_answer  # noqa: PLC0415
    from topodiag.report.html.machines import machines  # noqa: PLC0415
    from topodiag.report.topo.what_if import draw_what_if, what_if_json  # noqa: PLC0415

    check_written(printing, [file])
    try:
        wanted = changes_of(down=down, remove=remove, width=lanes, speed=speed, rate=rate, off=off, env=env)
        if not wanted:
            raise click.UsageError("No change: give --down, --remove, --lanes, --speed, --rate, --off or --env.")
        topology = open_topology(file)
        answer = ask(topology, wanted, size=size, nodes=nodes, version=version)
    except ChangeError as error:
        raise click.UsageError(f"{error}.") from None
    (name,), (topology, answer) = as_shown_with([file], (topology, answer), redact=printing.redact)

    write_answer(
        printing,
        "topo what-if",
        lambda page: draw_what_if(page, answer, name),
        lambda: what_if_json(answer, topology.inputs, topology.not_observed),
        lambda: result_of(topology),
        lambda: machines(topology.node),
    )
