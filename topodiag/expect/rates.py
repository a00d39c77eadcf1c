"""What NCCL's model reaches on a machine for a collective, before calibration, and what the wires allow at most.

Collectives that NCCL tunes (all_reduce, all_gather, reduce_scatter, broadcast, reduce) are priced by its own choice for
each size, with the corrections of expect_stages, each a term of the derivation. Point-to-point patterns (alltoall,
sendrecv, gather, scatter) are priced by the links that they cross.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache

from topodiag.expect.setup import NoSetupError, Setup
from topodiag.expect.stages import Terms, behind_pcie, limit_of, network_gbs, stages
from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import BY_WEIGHT, GRAPH_OF, busbw_factor
from topodiag.model.nccl_tree import Element
from topodiag.nccl.numbers import bus_id
from topodiag.nccl.predict import predict_job, predict_tree
from topodiag.nccl.prediction import NO_NIC, Choice, Prediction
from topodiag.nccl.topo.changes import ChangeError, gpus_of, nets_of
from topodiag.nccl.tuning.choice import LARGE_BYTES
from topodiag.words.units import in_gbs, spell_gbs

NCCL_NAMES: Mapping[str, str] = {collective.tested: collective.value for collective in BY_WEIGHT}
POINT_TO_POINT = ("alltoall", "sendrecv", "gather", "scatter")
"""nccl-tests' collectives that are made of ncclSend and ncclRecv."""

BULK_BYTES = 64 << 20
"""From here on a point-to-point pattern is taken as bound by its links: NCCL has no latency model of it."""

CHANNEL_GBS = 14.0
"""What one channel of a send or receive over the network carries, GB/s: NCCL_P2P_PER_CHANNEL_NET_BW, by which NCCL 2.29
counts its channels per peer (src/graph/paths.cc)."""

NCCL_RUNS = "NCCL runs"
"""Name of the terms that say from which size NCCL takes which algorithm."""


@dataclass(frozen=True, slots=True)
class Rates:
    """`busbw` and `time_us` by size in bytes, raw; `peak` the bus bandwidth of a large operation. `transport` names
    what bounds it, for the calibration. `latency_us`: NCCL's estimate of the smallest operation."""

    peak: float
    limit: float
    transport: str
    algorithm: str = ""
    busbw: Mapping[int, float] = field(default_factory=dict)
    time_us: Mapping[int, float] = field(default_factory=dict)
    latency_us: float | None = None
    terms: Terms = ()
    raw: float = 0.0
    """NCCL's own figure for a large operation, before its slowest stage is looked at; `peak` where it has none. Two
    machines are compared by it: it knows what a missing NIC or link takes from each algorithm, a stage does not."""
    by_algorithm: Mapping[str, float] = field(default_factory=dict)
    """The same by algorithm, of all that NCCL may run: it takes the one that it reckons to be the fastest."""
    below: float = 0.0
    """How far below it a run may fall at least, as a share, because the price itself is rough."""


RACKS_BELOW = 0.5
"""Racks: NCCL's own figure only ranks algorithms there, and one system is published, on 2 and 20 racks."""


def rates_of(setup: Setup, collective: str, sizes: Sequence[int]) -> Rates:
    """Raises NoSetupError where NCCL has nothing to run or the collective has no model."""
    if collective not in NCCL_NAMES and collective not in POINT_TO_POINT:
        raise NoSetupError(f"no model of {collective or 'an unknown collective'}")
    wanted = {size for size in sizes if size > 0}
    asked = tuple(sorted(wanted | {LARGE_BYTES}))
    name = NCCL_NAMES.get(collective, "")
    predicted = _predict(setup, setup.tree, setup.nodes, asked, name)
    if collective in POINT_TO_POINT:
        return _by_links(setup, predicted, collective, asked)
    choices = {choice.bytes: choice for choice in predicted.choices if choice.collective == name}
    if LARGE_BYTES not in choices or choices[LARGE_BYTES].busbw_gbs <= 0:
        raise NoSetupError("NCCL's settings leave no algorithm for it")
    large = choices[LARGE_BYTES]
    staged = stages(setup, predicted, large)
    priced = {size: choice for size, choice in choices.items() if size in wanted}
    terms = [_choice_term(predicted, large), *staged.terms, *_switches([priced[size] for size in sorted(priced)])]
    limit, limit_term = limit_of(setup, collective)

    def scale(choice: Choice) -> float:
        return staged.scale if choice.algorithm == large.algorithm else 1.0

    return Rates(
        peak=large.busbw_gbs * staged.scale,
        limit=limit,
        transport=_transport(setup, predicted, large.algorithm, across=staged.across),
        algorithm=f"{large.algorithm}/{large.protocol}",
        busbw={size: choice.busbw_gbs * scale(choice) for size, choice in priced.items()},
        time_us={size: choice.time_us / scale(choice) for size, choice in priced.items()},
        latency_us=_latency(predicted, name),
        terms=(*terms, limit_term),
        raw=large.busbw_gbs,
        by_algorithm=_by_algorithm(predicted, name),
        below=RACKS_BELOW if setup.nodes > setup.domain > 1 else 0.0,
    )  # fmt: skip


def reached(whole: Rates, now: Rates) -> float:
    """The share of a whole machine's bandwidth that a changed one reaches, by NCCL's own figures of both."""
    return now.raw / whole.raw


def reached_on(whole: Rates, now: Setup, collective: str) -> float:
    """The same of a changed machine, which NCCL's search is asked for once however many runs are judged. Raises
    NoSetupError as rates_of."""
    name = NCCL_NAMES.get(collective)
    if name is None or now.unlike is not None:
        return reached(whole, rates_of(now, collective, ()))
    raw = _large_gbs(now.tree, _within(now, now.nodes), now.version, tuple(sorted(now.env.items())), name)
    if raw <= 0:
        raise NoSetupError("NCCL refuses the topology, or its settings leave no algorithm")
    return raw / whole.raw


def share_left(whole: Rates, changed: Callable[[], Setup], collective: str) -> float | None:
    """`reached_on`, or None where the machine cannot be changed so, or the model has no answer."""
    try:
        return reached_on(whole, changed(), collective)
    except (NoSetupError, ChangeError, ZeroDivisionError):
        return None


@lru_cache(maxsize=4096)
def _large_gbs(tree: Element, nodes: int, version: str, env: tuple[tuple[str, str], ...], name: str) -> float:
    """NCCL's bus bandwidth of a large operation, GB/s; 0 where it refuses the tree or has nothing to run."""
    prediction = predict_tree(
        tree, nodes=nodes, version=version, env=dict(env), sizes=(LARGE_BYTES,), collectives=(name,)
    )
    return next((c.busbw_gbs for c in prediction.choices if (c.collective, c.bytes) == (name, LARGE_BYTES)), 0.0)


def _within(setup: Setup, nodes: int) -> int:
    """Nodes that NCCL's search is asked for: of racks that the network joins one."""
    return min(nodes, setup.domain) if setup.domain > 1 else nodes


def _predict(setup: Setup, tree: Element, nodes: int, sizes: Sequence[int], name: str) -> Prediction:
    """NCCL's decisions, of the collective called `name` alone."""
    if setup.unlike is not None:
        prediction = predict_job(
            setup.unlike.hosts, setup.unlike.members, version=setup.version, sizes=sizes, collectives=(name,)
        )
    else:
        prediction = predict_tree(
            tree,
            nodes=_within(setup, nodes),
            version=setup.version,
            env=setup.env,
            sizes=sizes,
            collectives=(name,),
        )
    if not prediction.accepted:
        raise NoSetupError(f"NCCL refuses the topology: {prediction.why}")
    if prediction.no_nic:
        raise NoSetupError(NO_NIC)
    return prediction


def _choice_term(predicted: Prediction, choice: Choice) -> tuple[str, str, str]:
    graph = predicted.graph(GRAPH_OF[choice.algorithm])
    how = (
        f"{graph.channels} channels x {in_gbs(graph.bw_inter)} between nodes, {spell_gbs(graph.bw_intra)} inside"
        if graph
        else ""
    )
    name = f"NCCL {predicted.version} {choice.algorithm}/{choice.protocol}"
    return name, in_gbs(choice.busbw_gbs), f"{how} ({predicted.ranks} ranks, {predicted.nccl_nodes} nodes)"


def _switches(choices: Sequence[Choice]) -> list[tuple[str, str, str]]:
    """From which of the run's sizes NCCL takes which algorithm and protocol."""
    rows: list[tuple[str, str, str]] = []
    for choice in choices:
        kind = f"{choice.algorithm}/{choice.protocol}"
        if not rows or rows[-1][1] != kind:
            rows.append((NCCL_RUNS, kind, f"from {choice.bytes} B"))
    return rows


def _transport(setup: Setup, predicted: Prediction, algorithm: str, *, across: bool) -> str:
    """The calibration's word for what bounds the operation."""
    if setup.nodes > setup.domain > 1 and across:
        return "racks"
    if setup.nodes > setup.domain == 1:
        kind = {"Tree": "tree", "NVLSTree": "nvls", "NVLS": "nvls"}.get(algorithm, "ring")
        return f"{setup.network}-{'pcie' if kind == 'ring' and behind_pcie(setup.tree) else kind}"
    return "nvls" if algorithm.startswith("NVLS") else inside_transport(predicted)


def inside_transport(predicted: Prediction) -> str:
    ring = predicted.graph(0)
    return "nvlink" if ring is not None and ring.type_intra in ("NVL", "NVB") else "pcie"


def _by_algorithm(predicted: Prediction, name: str) -> dict[str, float]:
    """Bus bandwidth of a large operation by algorithm, of the best protocol, as NCCL's table has it."""
    best = {
        algorithm: max((gbs for _, gbs in row.values()), default=0.0)
        for algorithm, row in predicted.tuning.get(name, {}).items()
    }
    factor = busbw_factor(name, predicted.ranks)
    return {str(algorithm): gbs * factor for algorithm, gbs in best.items() if gbs > 0}


def _latency(predicted: Prediction, name: str) -> float | None:
    """The least latency of the table for the collective."""
    rows = predicted.tuning.get(name, {})
    return min((latency for row in rows.values() for latency, gbs in row.values() if gbs > 0), default=None)


def _by_links(setup: Setup, predicted: Prediction, collective: str, sizes: Sequence[int]) -> Rates:
    n, per = setup.ranks, setup.per_node
    pair = _pair_gbs(setup, predicted)
    inside_gpu = min(predicted.total_bw, pair * (per - 1)) if per > 1 else float("inf")
    across = setup.nodes > setup.domain
    network = network_gbs(predicted)
    nics = max(len(nets_of(setup.tree)), 1)
    group = per * setup.domain
    channels = predicted.channels.p2p_per_peer if predicted.channels is not None else 1
    flow = channels * CHANNEL_GBS if across else float("inf")
    by_channels = f"{channels} channels per peer x {in_gbs(CHANNEL_GBS)}"
    terms: list[tuple[str, str, str]] = []
    if collective == "alltoall":
        inside = inside_gpu
        wide = network * setup.domain * (n - 1) / (group * max(n - group, 1)) if across else float("inf")
        formula = f"{in_gbs(network)} of NICs x {n - 1} / ({group} x {n - group}): what leaves a domain per GPU"
        if flow * (n - 1) < wide:
            wide, formula = flow * (n - 1), f"{by_channels}, {n - 1} peers: less than the NICs carry"
    elif collective == "sendrecv":
        inside = pair if per > 1 else float("inf")
        port = network / min(nics, max(per, 1)) if across else float("inf")
        wide = min(port, flow)
        formula = f"{in_gbs(port)} of the GPU's NIC for the one flow each way that leaves a node"
        if flow < port:
            formula = f"{by_channels}: less than the {in_gbs(port)} of the NIC"
    else:
        inside = inside_gpu
        wide = network / nics * (n - 1) / (n - group) if across else float("inf")
        formula = "the root's own NIC carries what comes from other nodes"
    if inside < float("inf"):
        terms.append(("links inside a node", in_gbs(inside), "NVLink or PCIe of one GPU as NCCL models it"))
    if across:
        terms.append(("network", in_gbs(wide), formula))
    peak = min(inside, wide)
    if not 0 < peak < float("inf"):
        raise NoSetupError("no link that the ranks would use is known")
    # With one rank outside, an alltoall is a single flow too.
    kind = "p2p" if collective == "alltoall" and n - group > 1 else "flow"
    transport = f"{setup.network}-{kind}" if wide <= inside else inside_transport(predicted)
    limit, limit_term = limit_of(setup, collective)
    bulk = {size: peak for size in sizes if size >= BULK_BYTES}
    return Rates(peak, limit, transport, "p2p", bulk, {}, None, (*terms, limit_term), peak)


def _pair_gbs(setup: Setup, predicted: Prediction) -> float:
    """The least bandwidth between two GPUs of a node that are neighbours in rank order, or any two."""
    gpus = [f"GPU/0-{bus_id(pci.get('busid') or ''):x}" for _, pci in sorted(gpus_of(setup.tree).items())]
    rates = [
        path[1]
        for label in predicted.paths
        if label.startswith("GPU/")
        for far, path in predicted.paths[label].items()
        if far.startswith("GPU/") and far != label
    ]
    neighbours = [
        predicted.paths[a][b][1]
        for a, b in zip(gpus, gpus[1:] + gpus[:1], strict=True)
        if a != b and b in predicted.paths.get(a, {})
    ]
    return min(neighbours or rates, default=0.0)
