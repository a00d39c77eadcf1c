"""`topodiag model step`: a whole training step."""

from __future__ import annotations

import click

from topodiag.cli.dimensions import job_option
from topodiag.cli.model.options import MachineOptions, machine_options
from topodiag.cli.model.step_options import LAYOUT_OPTIONS, MODEL_OPTIONS, TRAINING_OPTIONS, Trained, trained_options
from topodiag.cli.options import Command, Printing, plot_options
from topodiag.words.units import percent


@click.command(cls=Command)
@trained_options(job_option, MODEL_OPTIONS, LAYOUT_OPTIONS, TRAINING_OPTIONS)
@machine_options()
@plot_options
def step(  # noqa: PLR0917 - one parameter per option
    trained: Trained,
    nodes: int,
    sizes: dict[str, int],
    order: tuple[str, ...],
    asked: MachineOptions,
    svg: str | None,
    explain: bool,
    printing: Printing,
) -> None:
    """Estimate a training step: what each parallel dimension costs, which link carries it, and the worst placement.

    The model is a transformer of equal layers. The job has tp x cp x dp x pp GPUs.

    \b
    Examples
      topodiag model step --params 70B --tp 8 --pp 4 --nodes 16
      topodiag model step --job train.sh --system gb200-nvl72
    """
    from topodiag.app.model import ask_step  # noqa: PLC0415
    from topodiag.cli.model.options import draw_or_dump  # noqa: PLC0415 - heavy from here on
    from topodiag.draw.plot import bars_svg  # noqa: PLC0415
    from topodiag.report.model.step import draw_step, parts, step_json  # noqa: PLC0415
    from topodiag.words.units import spell_time  # noqa: PLC0415

    if trained.serves:
        raise click.UsageError("--job starts a server: it trains nothing, and has no step to price.")
    machine = asked.of_nodes(nodes)
    priced, peak, assumed = ask_step(machine, trained.given, sizes, order)
    layout, work = priced.layout, priced.work
    inputs = {
        **trained.given, "global_batch": work.global_batch, "zero": work.zero, "shard": work.shard,
        "peak_tflops": peak.tflops, "nodes": nodes, **layout.all_sizes, "order": "-".join(order),
    }  # fmt: skip
    title = f"{spell_time(priced.time_us)} per step: {layout.world} GPUs, {machine.name}"
    bars = [(name, us / 1000, f"{spell_time(us)}  {percent(us / priced.time_us)}") for name, us, _ in parts(priced)]

    draw_or_dump(
        lambda page: draw_step(page, priced, assumed, explain=explain),
        lambda: step_json(priced, assumed, inputs),
        printing=printing, svg=svg, series=tuple, title=title,
        picture=lambda: bars_svg(bars, title=title),
    )  # fmt: skip
