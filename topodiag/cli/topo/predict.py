"""`topodiag topo predict`: what NCCL would choose on a topology."""

from __future__ import annotations

import click

from topodiag.cli.errors import FOUND, Outcome
from topodiag.cli.options import Command, Printing, answer_options, nccl_option, options
from topodiag.cli.params import EVIDENCE


@click.command(cls=Command)
@click.argument("file", type=EVIDENCE)
@options("nodes", nccl_option(), "env", "system", "explain", of="topo predict")
@answer_options()
@click.pass_obj
def predict(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
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
    from topodiag.app.topo import result_of  # noqa: PLC0415
    from topodiag.cli.output import printable_with, write_answer  # noqa: PLC0415
    from topodiag.report.grid import draw_assumed  # noqa: PLC0415
    from topodiag.report.html.sections.picture import machines  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415
    from topodiag.report.topo.predict import draw_prediction, predict_json  # noqa: PLC0415

    topology = open_topology(file, env, system)
    prediction = predict_topology(
        topology, nodes=nodes, version=nccl, env=env, explain=explain or printing.format_ == "json"
    )
    reached.code = 0 if prediction.accepted else FOUND
    (name,), (topology, prediction) = printable_with([file], (topology, prediction), redact=printing.redact)

    def draw(page: Page) -> None:
        draw_prediction(page, prediction, name, names=topology.names, explain=explain)
        draw_assumed(page, (*topology.assumed, *prediction.assumed))

    write_answer(
        printing,
        "topo predict",
        draw,
        lambda: predict_json(prediction, topology.inputs, topology.not_observed),
        lambda: result_of(topology),
        lambda: machines(topology.node),
    )
