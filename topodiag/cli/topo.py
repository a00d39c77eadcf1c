"""`topodiag topo`: topology files checked, drawn, compared and changed, and what NCCL makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import FOUND, reach
from topodiag.cli.options import Command, Printing, answer_options, nccl_option, options, report_options, value_options
from topodiag.cli.output import conclude, printable, printable_with, write_answer, write_report
from topodiag.cli.params import EVIDENCE

if TYPE_CHECKING:
    from topodiag.app.case.topology import Topology
    from topodiag.report.documents.from_model import Document
    from topodiag.report.text import Page


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
    from topodiag.report.formats.json import document  # noqa: PLC0415
    from topodiag.report.html.sections.picture import machines  # noqa: PLC0415
    from topodiag.report.table import draw_machine  # noqa: PLC0415

    result = printable(scan([file]), redact=printing.redact)
    unjudged = replace(result, findings=(), outcomes=())

    def draw(page: Page) -> None:
        for node in result.nodes:
            draw_machine(page, result, node)

    write_answer(
        printing, "topo show", draw, lambda: document(unjudged), lambda: replace(unjudged, nodes=()),
        lambda: machines(*result.nodes),
    )  # fmt: skip


@click.command(cls=Command)
@click.argument("file", type=EVIDENCE)
@options(nccl_option(otherwise="all of them"), "against", of="topo check")
@report_options()
def check(file: str, nccl: str, against: str | None, printing: Printing) -> None:
    """Check whether NCCL loads this topology file, whether the file is complete, and whether it fits the machine.

    Where NCCL refuses the file, the report shows the line and NCCL's message. Without --nccl the file is checked for
    all known versions.
    """
    from topodiag.app.topo import check_topology  # noqa: PLC0415
    from topodiag.report.topo.check import draw_check  # noqa: PLC0415

    result = printable(check_topology(file, version=nccl, against=against), redact=printing.redact)
    conclude(result, printing.fail_on)
    write_report(printing, "topo check", result, draw_check)


@click.command(cls=Command)
@click.argument("file", type=EVIDENCE)
@options("nodes", nccl_option(), "env", "system", "explain", of="topo predict")
@answer_options()
def predict(  # noqa: PLR0917 - one parameter per option
    file: str,
    nodes: int,
    nccl: str,
    env: dict[str, str],
    system: str | None,
    explain: bool,
    printing: Printing,
) -> None:
    """Predict what NCCL chooses on a topology: paths, channels, algorithms, and the bandwidth to expect.

    Exit code 1: this version of NCCL refuses the topology. -v shows all collectives and the whole tuning table. The
    prediction leaves out symmetric kernels, collectives by copy engines (also hierarchical ones), communicators that
    shrink or grow, rails that NCCL 2.32 gives ConnectX-9, and Data Direct functions.
    """
    from topodiag.app.case.topology import open_topology, predict_topology  # noqa: PLC0415
    from topodiag.report.grid import draw_assumed  # noqa: PLC0415
    from topodiag.report.topo.predict import draw_prediction, predict_json  # noqa: PLC0415

    topology = open_topology(file, env, system)
    prediction = predict_topology(
        topology, nodes=nodes, version=nccl, env=env, explain=explain or printing.format_ == "json"
    )
    reach(0 if prediction.accepted else FOUND)
    (name,), (topology, prediction) = printable_with([file], (topology, prediction), redact=printing.redact)

    def draw(page: Page) -> None:
        draw_prediction(page, prediction, name, names=topology.names, explain=explain)
        draw_assumed(page, (*topology.assumed, *prediction.assumed))

    _write(
        printing, "topo predict", draw,
        lambda: predict_json(prediction, topology.inputs, topology.not_observed), topology,
    )  # fmt: skip


_CHANGES = ("down", "remove", "lanes", "speed", "rate", "off")


@click.command("what-if", cls=Command)
@click.argument("file", type=EVIDENCE)
@value_options("changes", dict, options(*_CHANGES, of="topo what-if"), _CHANGES)
@options("size", "nodes", nccl_option(), "env", of="topo what-if")
@answer_options()
def what_if(  # noqa: PLR0917 - one parameter per option
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
    from topodiag.app.topo import ChangeError, changes_of  # noqa: PLC0415
    from topodiag.app.topo import what_if as ask  # noqa: PLC0415
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

    _write(
        printing, "topo what-if", lambda page: draw_what_if(page, answer, name),
        lambda: what_if_json(answer, topology.inputs, topology.not_observed), topology,
    )  # fmt: skip


@click.command(cls=Command)
@click.argument("left", type=EVIDENCE)
@click.argument("right", type=EVIDENCE)
@options("buses", "nodes", nccl_option(), of="topo diff")
@answer_options()
def diff(left: str, right: str, buses: bool, nodes: int, nccl: str, printing: Printing) -> None:  # noqa: PLR0917
    """Compare two machines, for example a node with a healthy peer, and what NCCL chooses on each.

    Host hashes, GUIDs, ranks and PCI domains always differ and are ignored. Exit code 1: the machines differ.

    \b
    Example
      topodiag topo diff fixture:dgx-h100-healthy fixture:dgx-h100-gpu5-x4
    """
    from topodiag.app.topo import compare_topologies  # noqa: PLC0415
    from topodiag.report.topo.what_if import diff_json, draw_diff  # noqa: PLC0415

    answer = compare_topologies(left, right, buses=buses, nodes=nodes, version=nccl)
    names, (compared, sides) = printable_with([left, right], answer, redact=printing.redact)
    reach(FOUND if compared.differences else 0)

    inputs = [piece for side in sides for piece in side.inputs]
    gaps = [*compared.not_compared, *(gap for side in sides for gap in side.not_observed)]
    _write(
        printing, "topo diff", lambda page: draw_diff(page, names, compared),
        lambda: diff_json(names, compared, inputs, gaps), *sides,
    )  # fmt: skip


def _write(
    printing: Printing, command: str, draw: Callable[[Page], None], dump: Callable[[], Document], *read: Topology
) -> None:
    """The answer about topologies; a page of HTML also has pictures of their machines."""
    from topodiag.app.topo import result_of  # noqa: PLC0415
    from topodiag.report.html.sections.picture import machines  # noqa: PLC0415

    nodes = [topology.node for topology in read]
    write_answer(printing, command, draw, dump, lambda: result_of(*read), lambda: machines(*nodes))
