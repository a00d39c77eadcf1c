"""Who talks to whom in a job, and how much: demands from the sizes of its dimensions, or from its communicators.

How much is said by the training step that is priced (topodiag/cost/step.py), by sizes in the job's logs, or by the rule
of thumb: the same step for a stated model. Each says of itself which it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from topodiag.cost import traffic
from topodiag.cost.questions import ModelError
from topodiag.cost.step import Piece, Step, Work, beside_us, price_once, price_step
from topodiag.cost.tiers import LackingError, Machine, Tier
from topodiag.cost.training import price_training
from topodiag.hardware import catalog
from topodiag.hardware.compute import peak
from topodiag.hardware.specs import GpuSpec
from topodiag.lazy import dataclass
from topodiag.model.cluster import Cluster, Demand, Ints
from topodiag.model.layout import BY_NAME, Layout, LayoutError
from topodiag.model.layout_groups import groups_of, replicas_of
from topodiag.placement.price import level_link

_PEAK_TFLOPS = 989.0
"""Of the rule of thumb where the GPU's own is not known: H100 SXM, BF16, dense (NVIDIA H100 datasheet)."""
_THUMB_BATCHES = 16
"""Micro-batches per replica of the rule of thumb."""


@dataclass(frozen=True, slots=True)
class Talk:
    """Who talks to whom in a step. `base_us` is what a step takes besides the communication that it waits for (compute
    and the pipeline's idle time), None where nothing says so. `assumed` are sentences."""

    world: int
    demands: tuple[Demand, ...]
    base_us: float | None = None
    assumed: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Sizes of the dimensions, for the reader."""
    unit: str = "step"
    """What the calls are of: a `step` of training, or a `request` to a server."""


@dataclass(frozen=True, slots=True)
class Transformer:
    """A model that stands for all of about its size. `name` is its number of parameters as one says it."""

    name: str
    parameters: float
    layers: int
    hidden: int


USUAL = Transformer("70B", 70e9, 80, 8192)
"""The rule of thumb's."""
OTHERS = (Transformer("8B", 8e9, 32, 4096), Transformer("405B", 405e9, 126, 16384))
"""A small one and a large one (A. Dubey et al., The Llama 3 herd of models, 2024, table 3): what lies between them is
what nobody says."""


def thumb(gpu: GpuSpec | None, layout: Layout, model: Transformer = USUAL) -> Work:
    """The rule of thumb: a transformer of 70e9 parameters, 80 layers, hidden size 8192 (or another `model`), sequence
    4096, one sequence per micro-batch and 16 micro-batches; with expert parallelism a mixture of experts of that size,
    two per token."""
    gpu_peak = peak(gpu, "bf16") if gpu is not None else None
    experts = max(8, layout.ep) if layout.ep > 1 else 0
    attention = 4.0 * model.layers * model.hidden**2
    active = attention + (model.parameters - attention) * 2 / experts if experts else None
    return Work(
        parameters=model.parameters,
        layers=model.layers,
        hidden=model.hidden,
        sequence=4096,
        micro_batch=1,
        global_batch=_THUMB_BATCHES * max(layout.dp, 1),
        peak_tflops=gpu_peak.tflops if gpu_peak else _PEAK_TFLOPS,
        zero=1,
        experts=experts,
        active_parameters=active,
    )


def gpu_of(cluster: Cluster) -> GpuSpec | None:
    """The product that the cluster's GPUs are, None where it is not known."""
    return next((product for product in catalog.gpus() if product.name == cluster.gpu), None)


def machine_of(cluster: Cluster, world: int) -> Machine:
    """The cluster's nodes, filled one after the other, as the step model wants them: its innermost links."""
    slots = max(cluster.slots, 1)
    nodes = -(-world // slots)
    inside = Tier("inside", level_link(replace(cluster, levels=()), 1), slots, 0.0, "")
    network = Tier("network", level_link(cluster, 1), world, 0.0, "")
    name = cluster.system or "the cluster"
    outside = network if nodes > 1 else None
    return Machine(name, nodes, slots, slots, inside, outside, switch=cluster.switch, gpu=gpu_of(cluster))


def talk_of_layout(cluster: Cluster, layout: Layout, world: int, work: Work | None = None) -> Talk:
    """The demands of parallel dimensions. `work` is what is trained; None for the rule of thumb. Raises LayoutError
    where sizes do not multiply to `world`, ModelError where the work does not divide."""
    whole = layout.for_world(world)
    machine = machine_of(cluster, world)
    try:
        if work is None:
            # Nobody asked for these sizes: what does not divide is taken as a fraction.
            step = price_step(thumb(machine.gpu, whole), whole, machine)
        else:
            step = price_training(work, whole, machine)
    except (LayoutError, LackingError) as error:
        raise ModelError(str(error)) from None
    return talk_of_step(cluster, step, whole, () if work is not None else (THUMB_WORDS,))


THUMB_WORDS = (
    "the traffic of each dimension is the rule of thumb: a transformer of 70e9 parameters (80 layers, hidden 8192, "
    "sequence 4096, 16 micro-batches of one sequence, computing at half of the peak); give --model or --job for another"
)


def talk_of_server(cluster: Cluster, layout: Layout, world: int) -> Talk:
    """The demands of one request to an engine that serves: the forward pass of the rule of thumb's model over one
    sequence, half of a micro-batch. Replicas answer requests of their own. Raises as `talk_of_layout`."""
    talk = talk_of_layout(cluster, layout, world)
    demands = tuple(
        replace(demand, calls=demand.calls / (2 * _THUMB_BATCHES), exposed=1.0, stretch=1.0)
        for demand in talk.demands
        if not demand.dimension.endswith("dp")
    )
    note = f"a request is one prompt of 4096 tokens to a transformer of {USUAL.name} ({USUAL.layers} layers)"
    return replace(talk, demands=demands, base_us=None, assumed=(note,), unit="request")


def other_talks(cluster: Cluster, layout: Layout, world: int) -> tuple[tuple[str, Talk], ...]:
    """The same dimensions in a step of a smaller and of a larger model, by the model's name: what a share of a step
    depends on where nobody says what is trained. One that the memory of these GPUs does not hold is left out. Raises
    LayoutError."""
    whole = layout.for_world(world)
    machine = machine_of(cluster, world)
    room = machine.gpu.memory_gb if machine.gpu is not None else 0.0
    pairs = []
    for model in OTHERS:
        step = price_once(thumb(machine.gpu, whole, model), whole, machine)
        if not room or step.memory.total + step.activations_gb <= room:
            pairs.append((model.name, talk_of_step(cluster, step, whole)))
    return tuple(pairs)


def talk_of_step(cluster: Cluster, step: Step, layout: Layout, assumed: Sequence[str] = ()) -> Talk:
    """The demands of a priced step of the same layout."""
    world = step.layout.world
    families = groups_of(layout, world)
    beside = beside_us(step.work, step.compute_us, step.micro_batches)
    idle = traffic.bubble(step.layout.pp, step.micro_batches, step.work.chunks)
    demands: list[Demand] = []
    for piece in step.pieces:
        name = piece.dimension
        total, _ = step.dimension_us(name)
        overlap = step.work.overlap.get(name, 0.0)
        room = beside.get(name, step.compute_us) * (piece.total_us / total if total > 0 else 0.0)
        label, groups = _family(piece, step, families)
        demands.append(
            Demand(
                label, groups, piece.traffic.collective, piece.traffic.size, piece.traffic.calls, 1.0 - overlap,
                keep_together=BY_NAME[name].together, why=piece.traffic.formula, beside_us=room,
                stretch=1 / (1 - idle) if BY_NAME[name].inside_layers else 1.0,
            )
        )  # fmt: skip
    sizes = {name: size for name, size in step.layout.all_sizes.items() if size > 1}
    return Talk(world, tuple(demands), step.compute_us / (1 - idle), tuple(assumed), sizes)


def _family(piece: Piece, step: Step, families: Mapping[str, Ints]) -> tuple[str, Ints]:
    """(name, groups) of the dimension that a piece's traffic runs in."""
    layout, size = step.layout, len(piece.ranks)
    if piece.dimension != "dp":
        return piece.dimension, families[piece.dimension]
    dense = replicas_of(families, layout)
    shard = step.work.shard
    if shard and dense is not None:
        blocks = dense.reshape(-1, dense.shape[1] // shard, shard)
        if piece.ranks == layout.shards(shard):
            return "dp shards", blocks.reshape(-1, shard)
        if piece.ranks == layout.shard_replicas(shard):
            return "dp replicas", blocks.transpose(0, 2, 1).reshape(-1, dense.shape[1] // shard)
        return "expert shards", blocks.reshape(-1, shard // layout.ep, layout.ep).transpose(0, 2, 1).reshape(-1, size)
    if layout.ep > 1 and size < layout.copies and "expert-dp" in families:
        return "expert dp", families["expert-dp"]
    if dense is None:
        raise LayoutError("no dimension repeats the weights", hint="give --dp")
    return "dp", dense


def talk_of_groups(cluster: Cluster, groups: Sequence[Demand], world: int) -> Talk:
    """Demands that were given as they are; what they leave open is the rule of thumb of the dimension. Raises
    LayoutError for a rank that the job has not."""
    for demand in groups:
        if demand.groups.size and int(demand.groups.max()) >= world:
            raise LayoutError(
                f"{demand.dimension} has rank {int(demand.groups.max())}, and the job has {world} ranks",
                hint="ranks count from 0",
            )
    demands = tuple(demand if demand.bytes > 0 else _thumbed(demand) for demand in groups)
    assumed = (THUMB_GROUP_WORDS,) if any(demand.bytes <= 0 for demand in groups) else ()
    return Talk(world, demands, None, assumed, {demand.dimension: demand.size for demand in demands})


THUMB_GROUP_WORDS = (
    "groups without bytes are priced by the rule of thumb: what must stay together all-reduces 64 MiB 5120 times in a "
    "step, other groups 1 GiB once"
)
_OFTEN, _OFTEN_BYTES = 5120.0, 64.0 * 2**20
"""The rule of thumb of a group inside the layers: 4 x 80 layers x 16 micro-batches of 4096 x 8192 x 2 bytes."""
_ONCE_BYTES = 2.0**30


def _thumbed(demand: Demand) -> Demand:
    if demand.keep_together:
        return replace(demand, bytes=_OFTEN_BYTES, calls=_OFTEN)
    return replace(demand, bytes=_ONCE_BYTES, calls=1.0)


def ids_by_rank(talk: Talk) -> dict[str, Ints]:
    """By dimension the number of the group that each rank is in, -1 for none."""
    ids: dict[str, Ints] = {}
    for demand in talk.demands:
        if demand.dimension not in ids and demand.groups.size:
            number = np.full(talk.world, -1, np.int64)
            number[demand.groups] = np.arange(len(demand.groups))[:, None]
            ids[demand.dimension] = number
    return ids
