"""`topodiag model step`: a whole training step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.model_options import link_options, machine_from, options, system_options
from topodiag.cli.model_step_options import LAYOUT_OPTIONS, MODEL_OPTIONS
from topodiag.cli.params import Printing, format_option, page_options
from topodiag.cli.plotting import plot_option

if TYPE_CHECKING:
    from topodiag.cost.alpha_beta import Link


@click.command()
@options(MODEL_OPTIONS, LAYOUT_OPTIONS, system_options, link_options)
@plot_option
@click.option("--explain", is_flag=True, help="Show each term of the derivation.")
@format_option
@page_options
@click.pass_obj
def step(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    params: float,
    layers: int,
    hidden: int,
    seq: int,
    micro_batch: int,
    global_batch: int | None,
    precision: str,
    experts: int,
    top_k: int,
    capacity: float,
    active_params: float | None,
    kv_share: float,
    nodes: int,
    tp: int,
    cp: int,
    ep: int,
    pp: int,
    dp: int | None,
    chunks: int,
    zero: int,
    shard: int | None,
    sequence_parallel: bool,
    ulysses: bool,
    recompute: str,
    order: tuple[str, ...],
    overlap: dict[str, float],
    efficiency: float,
    peak_tflops: float | None,
    system: str,
    gpu: str,
    nics: tuple[int, float] | None,
    leaf: int | None,
    oversubscription: float,
    inside: Link | None,
    outside: Link | None,
    per_node: int,
    plot: str | None,
    explain: bool,
    format_: str,
    printing: Printing,
) -> None:
    """A whole training step: what each dimension costs, which tier carries it, and the worst misplacement.

    Prices a transformer of equal layers. The sizes of the dimensions multiply to the GPUs of the job.
    """
    from topodiag.cli.model_output import draw_or_dump  # noqa: PLC0415 - heavy from here on
    from topodiag.cost.step import Work  # noqa: PLC0415
    from topodiag.cost.training import fitted_layout, peak_of, price_training, work_assumed  # noqa: PLC0415
    from topodiag.report.model_step import draw_step, parts, step_json  # noqa: PLC0415
    from topodiag.report.model_words import spell_time  # noqa: PLC0415
    from topodiag.report.plot_png import bars_png  # noqa: PLC0415
    from topodiag.report.plot_svg import bars_svg  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    how = {"gpu": gpu, "nics": nics, "oversubscription": oversubscription, "inside": inside, "outside": outside}
    machine = machine_from(system, nodes, leaf=leaf, per_node=per_node, **how)  # type: ignore[arg-type]
    layout = fitted_layout(machine, tp=tp, cp=cp, ep=ep, pp=pp, dp=dp, order=order)
    peak = peak_of(machine, precision, peak_tflops)
    work = Work(
        parameters=params, layers=layers, hidden=hidden, sequence=seq, micro_batch=micro_batch,
        global_batch=global_batch or 16 * micro_batch * layout.dp, peak_tflops=peak.tflops, reached=efficiency,
        active_parameters=active_params, experts=experts, top_k=top_k, capacity=capacity, kv_share=kv_share,
        chunks=chunks, zero=3 if shard else zero, shard=shard or 0, sequence_parallel=sequence_parallel,
        ulysses=ulysses, recompute=recompute, overlap=overlap,
    )  # fmt: skip
    made = price_training(work, layout, machine)
    assumed = work_assumed(made, peak)
    inputs = {
        "params": params, "layers": layers, "hidden": hidden, "seq": seq, "micro_batch": micro_batch,
        "global_batch": work.global_batch, "precision": precision, "nodes": nodes, **layout.sizes, "ep": ep,
        "order": "-".join(order), "zero": work.zero, "shard": work.shard, "chunks": chunks, "experts": experts,
        "efficiency": efficiency, "peak_tflops": peak.tflops, "overlap": overlap, "recompute": recompute,
    }  # fmt: skip
    title = f"{spell_time(made.time_us)} per step: {layout.world} GPUs, {machine.name}"
    bars = [(name, us / 1000, f"{spell_time(us)}  {us / made.time_us:.1%}") for name, us, _ in parts(made)]

    def draw(page: Page) -> None:
        draw_step(page, made, assumed, explain=explain)

    draw_or_dump(
        draw,
        lambda: step_json(made, assumed, inputs),
        format_=format_, printing=printing,
        plot=plot, series=tuple, title=title,
        picture=(lambda: bars_svg(bars, title=title), lambda: bars_png(bars, title=title, unit="ms")),
    )  # fmt: skip
