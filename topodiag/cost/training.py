"""A training job as it is asked for: whether its sizes fit together, what its GPUs compute at most, what is assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from topodiag.cost.questions import ModelError
from topodiag.cost.step import Step, Work, price_once, price_step
from topodiag.cost.tiers import LackingError, Machine
from topodiag.hardware.compute import Peak, peak
from topodiag.lazy import dataclass
from topodiag.model.layout import COPIES, Divides, Layout, LayoutError, that_divide
from topodiag.words.units import percent


def fitted_layout(machine: Machine, sizes: Mapping[str, int], order: Sequence[str]) -> Layout:
    """The layout over all GPUs of the machine by sizes of dimensions; without `dp` it is what the others leave. Raises
    ModelError where sizes do not multiply."""
    layout = Layout(**sizes, order="-".join(order))
    fixed, words = layout.replica, layout.replica_words
    if not layout.dp:
        if machine.gpus % fixed:
            raise ModelError(
                f"{words} = {fixed} does not divide {machine.gpus} GPUs",
                hint=f"{machine.nodes} nodes of {machine.gpus_per_node}: choose sizes whose product divides that",
            )
        layout = replace(layout, dp=machine.gpus // fixed)
    elif fixed * layout.dp != machine.gpus:
        raise ModelError(
            f"{words} x dp {layout.dp} = {fixed * layout.dp}, not the {machine.gpus} GPUs of the job",
            hint=f"{machine.nodes} nodes of {machine.gpus_per_node}; leave out --dp for what the others leave",
        )
    if layout.copies % layout.ep:
        raise ModelError(f"ep {layout.ep} does not divide {' x '.join(copy.name for copy in COPIES)} = {layout.copies}")
    return layout


def peak_of(machine: Machine, precision: str, given: float | None) -> Peak:
    """The dense peak of the machine's GPU, or the one given. Raises ModelError where neither is there."""
    if given is not None:
        return Peak(given, "as given")
    fastest = peak(machine.gpu, precision) if machine.gpu is not None else None
    if fastest is None:
        name = machine.gpu.name if machine.gpu is not None else "the GPU"
        raise ModelError(f"no data on the {precision} peak of {name}", hint="give --peak-tflops")
    return fastest


def price_training(work: Work, layout: Layout, machine: Machine) -> Step:
    """A priced step. Raises ModelError where sizes do not divide, or the datasheet lacks what is needed."""
    layout = layout.filled
    for what, whole, by, words in (
        ("--global-batch", work.global_batch, layout.dp * work.micro_batch, "dp x micro-batch"),
        ("--layers", work.layers, layout.pp * work.chunks, "pp x chunks"),
        *(
            (option, whole, layout.over(what), " x ".join(dimension.name for dimension in that_divide(what)))
            for option, whole, what in (
                ("--hidden", work.hidden, Divides.TENSORS),
                ("--seq", work.sequence, Divides.SEQUENCE),
                ("--experts", work.experts, Divides.EXPERTS),
            )
        ),
    ):
        if whole % by:
            raise ModelError(f"{what} {whole} is no multiple of {words} = {by}")
    if layout.ep > 1 and not work.experts:
        raise ModelError(f"ep {layout.ep} without experts", hint="give --experts, of which each rank holds a part")
    if work.experts and work.top_k > work.experts:
        raise ModelError(f"--top-k {work.top_k} of {work.experts} experts")
    if (work.active_parameters or 0) > work.parameters:
        raise ModelError("--active-params are more than --params")
    if work.shard % layout.ep:
        raise ModelError(
            f"--shard {work.shard} is no multiple of ep = {layout.ep}", hint="a shard group holds all experts"
        )
    if work.chunks > 1 and layout.pp < 2:
        raise ModelError(f"--chunks {work.chunks} without a pipeline", hint="give --pp")
    try:
        return price_step(work, layout, machine)
    except (LackingError, LayoutError) as error:
        raise ModelError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Scaled:
    """The job on fewer nodes with as much work per replica. `efficiency`: tokens per GPU against the fewest nodes."""

    nodes: int
    gpus: int
    time_us: float
    efficiency: float


def weak_scaling(scaled: Step) -> tuple[Scaled, ...]:
    """The step on a half, a quarter, ... of the nodes, data parallelism and the batch shrinking alike, as far as sizes
    allow; the fewest nodes first. What is lost is what more replicas must tell each other."""
    tried: list[tuple[int, Step]] = []
    step = scaled
    while True:
        layout, nodes = step.layout, step.machine.nodes
        tried.append((nodes, step))
        halves = layout.dp // 2
        shared = layout.copies // 2
        if nodes % 2 or layout.dp % 2 or shared % layout.ep or shared % (step.work.shard or 1):
            break
        work = replace(step.work, global_batch=step.work.global_batch // 2)
        step = price_once(work, replace(layout, dp=halves), replace(step.machine, nodes=nodes // 2))
    _, least = tried[-1]
    return tuple(
        Scaled(nodes, step.layout.world, step.time_us, least.time_us / step.time_us) for nodes, step in reversed(tried)
    )


def work_assumed(step: Step, used: Peak) -> tuple[str, ...]:
    """What of the training itself was assumed, as sentences."""
    work = step.work
    beside = [name for name, share in work.overlap.items() if share > 0 and name in step.dimensions]
    sentences = [
        f"computation reaches {percent(work.reached)} of {used.tflops:g} TFLOPS between communications "
        f"(--efficiency; {used.source})",
        "6 P + 12 L h s operations per token"
        + (", a third more for recomputation" if work.recompute == "full" else ""),
        "activations and gradients travel at 16 bit; Adam keeps 12 bytes per parameter",
    ]
    if beside:
        words = ", ".join(f"{percent(work.overlap[name])} of {name}" for name in sorted(beside))
        sentences.append(f"{words} runs beside the compute that can hide it, the rest is waited for (--overlap)")
    if work.experts and work.active_parameters is None:
        sentences.append("every token passes all parameters: --active-params was not given")
    if work.experts:
        sentences.append("all parameters but attention's 4 h^2 per layer are experts")
    return tuple(sentences)


def work_of(trained: Mapping[str, Any], dp: int, peak: Peak) -> Work:
    """The work of a step of `dp` replicas on GPUs of this peak; without a global batch it is 16 micro-batches each."""
    return Work(
        parameters=trained["params"], layers=trained["layers"], hidden=trained["hidden"], sequence=trained["seq"],
        micro_batch=trained["micro_batch"], global_batch=trained["global_batch"] or 16 * trained["micro_batch"] * dp,
        peak_tflops=peak.tflops, reached=trained["efficiency"], active_parameters=trained["active_params"],
        experts=trained["experts"], top_k=trained["top_k"], capacity=trained["capacity"], kv_share=trained["kv_share"],
        chunks=trained["chunks"], zero=3 if trained["shard"] else trained["zero"], shard=trained["shard"] or 0,
        sequence_parallel=trained["sequence_parallel"], ulysses=trained["ulysses"], recompute=trained["recompute"],
        overlap=trained["overlap"],
    )  # fmt: skip
