"""`topodiag topo what-if`: before and after a fault, a repair or a setting, and the sentence for the data centre."""

from __future__ import annotations

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.options import Command, Printing, answer_options, nccl_option, options, value_options
from topodiag.cli.params import EVIDENCE

_CHANGES = ("down", "remove", "lanes", "speed", "rate", "off")


@click.command("what-if", cls=Command)
@click.argument("file", type=EVIDENCE)
@value_options("changes", dict, options(*_CHANGES, of="topo what-if"), _CHANGES)
@options("size", "nodes", nccl_option(), "env", of="topo what-if")
@answer_options()
@click.pass_obj
def what_if(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    file: str,
    changes: dict[str, tuple[str, ...]],
    size: int,
    nodes: int,
    nccl: str,
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
    from topodiag.cli.output import printable_with, write_answer  # noqa: PLC0415
    from topodiag.report.html.sections.picture import machines  # noqa: PLC0415
    from topodiag.report.topo.what_if import draw_what_if, what_if_json  # noqa: PLC0415

    try:
        wanted = changes_of(changes, env)
        if not wanted:
            raise click.UsageError("No change: give --down, --remove, --lanes, --speed, --rate, --off or --env.")
        topology = open_topology(file)
        answer = ask(topology, wanted, size=size, nodes=nodes, version=nccl)
    except ChangeError as error:
        raise click.UsageError(f"{error}.") from None
    (name,), (topology, answer) = printable_with([file], (topology, answer), redact=printing.redact)

    write_answer(
        printing,
        "topo what-if",
        lambda page: draw_what_if(page, answer, name),
        lambda: what_if_json(answer, topology.inputs, topology.not_observed),
        lambda: result_of(topology),
        lambda: machines(topology.node),
    )
