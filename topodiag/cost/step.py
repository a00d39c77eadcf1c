"""A training step priced: compute, what each dimension of parallelism sends and over which tier, the pipeline's bubble,
memory, and the one misplacement that would hurt most.

The model is D. Narayanan et al. (2021): a transformer of L equal layers; 6 P + 12 L h s operations per token forward
and backward, a third more with full recomputation; every micro-batch of a stage takes as long; tensor, context and
expert traffic lie between the compute of a layer, gradients after the last micro-batch. It says what the wires and the
arithmetic allow; kernels, data loading and stragglers are in the stated share of the peak.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import permutations
from math import fsum
from typing import assert_never

from topodiag.cost import traffic
from topodiag.cost.collectives import Term
from topodiag.cost.memory import ADAM_WITH_MASTER_BYTES, States, activations, states
from topodiag.cost.spread import Spread, price
from topodiag.cost.tiers import Machine
from topodiag.cost.traffic import Traffic
from topodiag.lazy import dataclass
from topodiag.model.layout import BY_NAME, DIMENSIONS, OVERLAP, Dimension, Divides, Layout, Pattern
from topodiag.words.units import percent

MATTERS = 0.05
"""Share of a step that the worst misplacement must cost before placement is worth a word."""
FEW_NODES = 4
"""Below it, under one switch, where groups sit between the nodes hardly matters."""
MATTERS_MUCH = 0.10
"""The same of so few nodes: what must stay inside a node is said all the same."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is trained, and how. Parameters and batches as counts, `peak_tflops` of a GPU in this precision, of which
    computation reaches `reached` between communications. `overlap` is the share of a dimension's communication that
    may run beside compute. `experts` 0 is a dense model. `kv_share`: key-value heads over heads."""

    parameters: float
    layers: int
    hidden: int
    sequence: int
    micro_batch: int
    global_batch: int
    peak_tflops: float
    reached: float = 0.5
    bytes_each: float = 2.0
    gradient_bytes: float = 2.0
    active_parameters: float | None = None
    experts: int = 0
    top_k: int = 2
    capacity: float = 1.0
    kv_share: float = 1.0
    chunks: int = 1
    zero: int = 0
    shard: int = 0
    sequence_parallel: bool = False
    ulysses: bool = False
    recompute: str = "selective"
    overlap: Mapping[str, float] = field(default_factory=OVERLAP.copy)

    @property
    def expert_parameters(self) -> float:
        """Of a mixture of experts: all but attention's 4 h^2 per layer."""
        return max(self.parameters - 4.0 * self.layers * self.hidden**2, 0.0) if self.experts else 0.0

    def flops_per_token(self) -> tuple[float, float]:
        """(all, of attention's scores), forward and backward; a third more where layers are computed twice."""
        scores = 12.0 * self.layers * self.hidden * self.sequence
        again = 4 / 3 if self.recompute == "full" else 1.0
        return again * (6.0 * (self.active_parameters or self.parameters) + scores), again * scores


@dataclass(frozen=True, slots=True)
class Piece:
    """One collective of one dimension: how often in a step, how long each, what of it is waited for."""

    dimension: str
    traffic: Traffic
    spread: Spread
    algorithm: str
    each_us: float
    exposed_us: float
    terms: tuple[Term, ...]
    ranks: tuple[int, ...]

    @property
    def total_us(self) -> float:
        return self.traffic.calls * self.each_us


@dataclass(frozen=True, slots=True)
class MisplacedDimension:
    """A dimension whose groups are split over twice the domains: the new time of its traffic and of the step."""

    dimension: str
    words: str
    dimension_us: float
    step_us: float


@dataclass(frozen=True, slots=True)
class BetterOrder:
    """The order of dimensions over the ranks that makes the step shortest."""

    order: tuple[str, ...]
    step_us: float


@dataclass(frozen=True, slots=True)
class Step:
    """A priced step. Times in us; `compute_us` is one GPU's own, `bubble_us` what it idles for the pipeline."""

    work: Work
    layout: Layout
    machine: Machine
    micro_batches: int
    compute_us: float
    bubble_us: float
    pieces: tuple[Piece, ...]
    memory: States
    activations_gb: float
    misplaced: tuple[MisplacedDimension, ...] = ()
    better: BetterOrder | None = None
    terms: tuple[Term, ...] = ()

    @property
    def time_us(self) -> float:
        return self.compute_us + self.bubble_us + fsum(piece.exposed_us for piece in self.pieces)

    @property
    def unhidden_us(self) -> float:
        """The step if nothing ran beside compute."""
        return self.time_us + fsum(piece.total_us - piece.exposed_us for piece in self.pieces)

    @property
    def mfu(self) -> float:
        """Model FLOPs over what the peak could do in the step, recomputation not counted."""
        flops, _ = replace(self.work, recompute="none").flops_per_token()
        tokens = self.work.global_batch * self.work.sequence
        return tokens * flops / self.layout.world / (self.work.peak_tflops * 1e6) / self.time_us

    @property
    def tokens_per_s(self) -> float:
        return self.work.global_batch * self.work.sequence / self.time_us * 1e6

    def dimension_us(self, name: str) -> tuple[float, float]:
        """(all, waited for) of a dimension."""
        mine = [piece for piece in self.pieces if piece.dimension == name]
        return fsum(piece.total_us for piece in mine), fsum(piece.exposed_us for piece in mine)

    @property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(piece.dimension for piece in self.pieces))

    @property
    def hardly_matters(self) -> str:
        """Why topology hardly matters to this job, "" where it does, or where another order of ranks would serve it."""
        if self.better is not None:
            return ""
        worst = self.misplaced[0].step_us / self.time_us - 1 if self.misplaced else 0.0
        if self.machine.gpus <= self.machine.domain:
            return "all GPUs share one NVLink domain or node: there is no placement to get wrong"
        if not self.misplaced:
            return "no group would be split by another placement"
        if worst < MATTERS:
            return f"the worst single misplacement would cost {percent(worst)} of a step: compute carries it"
        if self.machine.nodes < FEW_NODES and self.machine.spine is None and worst < MATTERS_MUCH:
            return f"fewer than {FEW_NODES} nodes under one switch"
        return ""


def price_step(work: Work, layout: Layout, machine: Machine) -> Step:
    """The step with its misplacements. The caller has checked that sizes multiply. Raises LackingError, LayoutError."""
    step = price_once(work, layout, machine)
    tried = []
    for name in step.dimensions:
        mine = [piece for piece in step.pieces if piece.dimension == name]
        domains = machine.gpus // machine.domain
        able = any(piece.spread.per_node > 1 and 2 * piece.spread.nodes <= domains for piece in mine)
        if not able or machine.network is None:
            continue
        other = price_once(work, layout, machine, {name: 2})
        fullest = max(piece.spread.per_node for piece in mine)
        tried.append(MisplacedDimension(name, _words(name, fullest), other.dimension_us(name)[0], other.time_us))
    tried.sort(key=lambda misplaced: -misplaced.step_us)
    return replace(step, misplaced=tuple(tried), better=_better(step))


def _better(step: Step) -> BetterOrder | None:
    """The best of the other orders, where it takes at least `MATTERS` of the step away."""
    layout = step.layout
    spread = [name for name in layout.dense_order if layout.sizes[name] > 1]
    texts = tuple(name for name in layout.dense_order if layout.sizes[name] == 1)
    orders = [
        BetterOrder(order, price_once(step.work, replace(layout, order="-".join(order)), step.machine).time_us)
        for order in ((*names, *texts) for names in permutations(spread))
    ]
    best = min(orders, key=lambda order: order.step_us)
    return best if best.step_us < (1 - MATTERS) * step.time_us else None


def _words(name: str, per_node: int) -> str:
    if BY_NAME[name].divides is Divides.LAYERS:
        return "neighbouring stages in different domains"
    return (
        f"every {name} group split over twice the domains, {max(per_node // 2, 1)} ranks in each in place of {per_node}"
    )


def price_once(work: Work, layout: Layout, machine: Machine, split: Mapping[str, int] | None = None) -> Step:
    """The step alone. `split` puts a dimension's groups into so many times as many domains. Raises LackingError."""
    layout = layout.filled
    micro_batches = work.global_batch // (layout.dp * work.micro_batch)
    tokens = work.global_batch * work.sequence / layout.world
    flops, _ = work.flops_per_token()
    compute = tokens * flops / (work.peak_tflops * work.reached * 1e6)
    beside = beside_us(work, compute, micro_batches)
    pieces: list[Piece] = []
    for name, ranks, sent in _traffic(work, layout, machine, micro_batches):
        spread = machine.spread(ranks, split=(split or {}).get(name, 1))
        for sent_traffic in sent:
            priced = price(sent_traffic.collective, spread, sent_traffic.size)
            total = sent_traffic.calls * priced.time_us
            spent = fsum(piece.total_us - piece.exposed_us for piece in pieces if piece.dimension == name)
            room = max(beside.get(name, compute) - spent, 0.0)
            waited = traffic.exposed(total, room, work.overlap.get(name, 0.0))
            pieces.append(
                Piece(name, sent_traffic, spread, priced.algorithm, priced.time_us, waited, priced.terms, tuple(ranks))
            )
    stage = compute + fsum(piece.exposed_us for piece in pieces if BY_NAME[piece.dimension].inside_layers)
    idle = traffic.bubble(layout.pp, micro_batches, work.chunks)
    kept = _states(work, layout)
    held = _activations(work, layout, micro_batches)
    step = Step(work, layout, machine, micro_batches, compute, stage * idle / (1 - idle), tuple(pieces), kept, held)
    return replace(step, terms=_terms(step, tokens, flops, idle))


def beside_us(work: Work, compute_us: float, micro_batches: int) -> Mapping[str, float]:
    """The compute beside which a dimension's traffic can run, where it is not all: gradients beside the last
    micro-batch (with ZeRO 3 weights beside all), keys and values beside attention."""
    flops, scores = work.flops_per_token()
    room = {
        Pattern.GRADIENTS: compute_us if work.zero == 3 else compute_us / micro_batches,
        Pattern.ATTENTION: compute_us * scores / flops,
    }
    return {dimension.name: room[dimension.pattern] for dimension in DIMENSIONS if dimension.pattern in room}


def _local(work: Work, layout: Layout) -> tuple[float, float]:
    """(dense, expert) parameters on one GPU."""
    shared = layout.over(Divides.TENSORS, Divides.LAYERS)
    return (work.parameters - work.expert_parameters) / shared, work.expert_parameters / shared / layout.ep


def _states(work: Work, layout: Layout) -> States:
    """Weights, gradients and optimiser on one GPU: those of experts are shared by fewer ranks than all others."""
    dense, experts = _local(work, layout)
    parts = [
        states(parameters, ranks, work.zero, bytes_each=work.bytes_each, optimiser_bytes=ADAM_WITH_MASTER_BYTES)
        for parameters, ranks in (
            (dense, work.shard or layout.copies),
            (experts, (work.shard or layout.copies) // layout.ep),
        )
    ]
    return States(
        fsum(part.weights for part in parts),
        fsum(part.gradients for part in parts),
        fsum(part.optimiser for part in parts),
    )


def _activations(work: Work, layout: Layout, micro_batches: int) -> float:
    """GB that the first stage keeps: as many micro-batches as there are stages ahead (1F1B)."""
    tokens = work.micro_batch * work.sequence / layout.over(Divides.SEQUENCE)
    micro_batch_gb = activations(
        tokens, work.hidden, work.layers / layout.pp, layout.over(Divides.TENSORS),
        sequence_parallel=work.sequence_parallel, recompute=work.recompute,
    )  # fmt: skip
    return micro_batch_gb * min(micro_batches, layout.pp)


def _traffic(
    work: Work, layout: Layout, machine: Machine, micro_batches: int
) -> list[tuple[str, Sequence[int], tuple[Traffic, ...]]]:
    """(dimension, ranks of one group, what it sends) of every dimension with more than one rank, gradients last."""
    rows: list[tuple[str, Sequence[int], tuple[Traffic, ...]]] = []
    for dimension in DIMENSIONS:
        if layout.all_sizes[dimension.name] > 1 and dimension.pattern is not Pattern.GRADIENTS:
            ranks = (
                layout.worst(dimension.name, machine.domain) if dimension.numbers_ranks else layout.shards(layout.ep)
            )
            rows.append((dimension.name, ranks, _sent(dimension, work, layout, micro_batches)))
    return rows + _gradients(work, layout, micro_batches)


def _sent(dimension: Dimension, work: Work, layout: Layout, micro_batches: int) -> tuple[Traffic, ...]:
    """What a group of the dimension sends in a step; gradients, which cross several dimensions, are `_gradients`."""
    layers, tensors = work.layers / layout.pp, layout.over(Divides.TENSORS)
    tokens = work.micro_batch * work.sequence / layout.over(Divides.SEQUENCE)
    activation = tokens * work.hidden * work.bytes_each
    sharded = tensors if work.sequence_parallel else 1
    match dimension.pattern:
        case Pattern.ACTIVATIONS:
            return traffic.tensor(layers, micro_batches, activation, sequence_parallel=work.sequence_parallel)
        case Pattern.ATTENTION:
            own, ranks = activation / tensors, layout.sizes[dimension.name]
            return traffic.context(
                layers, micro_batches, 2 * own * work.kv_share, ranks, ulysses=work.ulysses, activation=own
            )
        case Pattern.TOKENS:
            return traffic.expert(
                layers, micro_batches, tokens / sharded, work.hidden, work.bytes_each,
                top_k=work.top_k, capacity=work.capacity,
            )  # fmt: skip
        case Pattern.BOUNDARIES:
            return traffic.pipeline(micro_batches, activation / sharded, chunks=work.chunks)
        case Pattern.GRADIENTS:
            return ()
        case _:
            assert_never(dimension.pattern)


def _gradients(work: Work, layout: Layout, micro_batches: int) -> list[tuple[str, Sequence[int], tuple[Traffic, ...]]]:
    dense, experts = _local(work, layout)
    rows: list[tuple[str, Sequence[int], tuple[Traffic, ...]]] = []
    for parameters, groups in ((dense, 1), (experts, layout.ep)):
        ranks = layout.shard_replicas(groups)
        if parameters <= 0 or len(ranks) < 2:
            continue
        if work.shard:
            # Of a shard group every ep-th rank holds the same experts (torchtitan, distributed/parallel_dims.py).
            own = layout.shards(work.shard)[::groups]
            within, among = traffic.hybrid(parameters, work.gradient_bytes, len(own), micro_batches)
            if len(own) > 1:
                rows.append(("dp", own, within))
            if len(layout.shard_replicas(work.shard)) > 1:
                rows.append(("dp", layout.shard_replicas(work.shard), among))
        elif work.zero:
            rows.append(("dp", ranks, traffic.zero(work.zero, parameters, work.gradient_bytes, micro_batches)))
        else:
            rows.append(("dp", ranks, traffic.data(parameters, work.gradient_bytes)))
    return rows


def _terms(step: Step, tokens: float, flops: float, idle: float) -> tuple[Term, ...]:
    work, layout = step.work, step.layout
    terms = [
        Term("micro-batches", step.micro_batches, "", "global batch / (dp x micro-batch)"),
        Term("operations per token", flops, "FLOP", "6 P + 12 L h s, forward and backward"),
        Term("tokens per GPU", tokens, "tokens", f"global batch x s / {layout.world} GPUs"),
        Term("compute", step.compute_us, "us", f"tokens x operations / ({work.peak_tflops:g} TFLOPS x {work.reached})"),
    ]
    for name in step.dimensions:
        total, waited = step.dimension_us(name)
        sent = [piece.traffic for piece in step.pieces if piece.dimension == name]
        words = "; ".join(f"{one.calls:g} x {one.collective} of {one.size:.4g} B ({one.formula})" for one in sent)
        terms.append(Term(f"{name} traffic", total, "us", words))
        terms.append(Term(f"{name} waited for", waited, "us", "what does not run beside compute"))
    sizes = f"p = {layout.pp}, m = {step.micro_batches}, v = {work.chunks}"
    words = f"(p-1)/(v m + p-1) = {percent(idle)} of the pipeline's time, {sizes}"
    terms.append(Term("bubble", step.bubble_us, "us", words))
    terms.append(Term("step", step.time_us, "us", "compute + waited for + bubble"))
    return tuple(terms)
