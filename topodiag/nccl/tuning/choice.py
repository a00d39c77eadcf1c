"""What NCCL runs for an operation of a size: the algorithm and protocol with the least predicted time.

Source: ncclTopoGetAlgoTime in src/graph/tuning.cc and the loop over algorithms in src/enqueue.cc (getAlgoInfo,
updateCollCostTable); since 2.31 ncclTuningCompute in src/tuning/tuning.cc. Of a single float32 sum, which all
algorithms can do; calls that NCCL merges, fp8 (which avoids long rings) and buffers that a user registered are not
modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from topodiag.model.nccl_enums import (
    COLLNET,
    NVLS_FAMILY,
    SHARDED,
    Algorithm,
    Collective,
    CpuArch,
    Graph,
    Protocol,
    busbw_factor,
)
from topodiag.model.nccl_versions import DIRECT_RANKS, NVLS_RANKS, Feature, has, path_types
from topodiag.nccl.graph.graph import CommShape
from topodiag.nccl.prediction import Choice, TuningTable
from topodiag.nccl.settings import Settings
from topodiag.nccl.tuning import tuning_constants as tc
from topodiag.nccl.tuning.tuning import ring_backup
from topodiag.nccl.tuning.tuning_lists import allowed
from topodiag.nccl.tuning.tuning_model import Cell, Model

LARGE_BYTES = 16 << 30
"""The largest size that nccl-tests is usually run with: latency is a hundredth or less on a few nodes."""

MOST_BYTES = 1 << 62
"""Sizes above are no operation's (NCCL counts bytes in a size_t); they have no choice."""

_Cell = tuple[str, str, float, float]
"""Algorithm, protocol, latency in us, algorithm bandwidth in GB/s."""

_Timed = tuple[str, str, Callable[[int], float]]
"""Algorithm, protocol, and what an operation of so many bytes takes, us."""


def predicted_us(shape: CommShape, cell: Cell, entry: tuple[float, float]) -> Callable[[int], float]:
    """NCCL's estimate of one operation's time by its bytes. `entry` is the table's (latency us, GB/s); not one of
    0 GB/s. What no size changes is asked once for all of a table."""
    latency, bandwidth = entry
    collective, algorithm, protocol = cell.collective, cell.algorithm, cell.protocol
    corrected = _corrected_sizes(shape, algorithm) if collective == Collective.ALL_REDUCE else 0
    correction = tc.constants(shape.minor).tree_correction[protocol]
    least = -1 if has(shape.minor, Feature.SIZES_BELOW_64_APART) else 0
    rings = (algorithm, protocol) == (Algorithm.RING, Protocol.SIMPLE)
    parts = max(shape.channels * shape.nranks, 1)

    def time_us(nbytes: int) -> float:
        wide, start = bandwidth, latency
        if corrected:
            size = max((nbytes >> 6).bit_length() - 1, least)  # floor(log2(nbytes / 64)): below 64 bytes -1, once 0
            if 0 <= size < corrected:
                wide *= correction[size]
        if rings:
            start *= _plateau(shape, collective, nbytes // parts)
        return start + nbytes / (1000 * wide)

    return time_us


def _plateau(shape: CommShape, collective: str, share: int) -> float:
    """By what a Simple ring's start is slower for sizes that fill its channels; `share` is the bytes of each channel
    and rank."""
    if share < tc.RING_PLATEAU_BYTES or not _on_plateau(shape, collective):
        return 1.0
    factor = tc.RING_PLATEAU_OLD if shape.min_sm < 80 else tc.RING_PLATEAU
    if shape.nodes > 1 or not has(shape.minor, Feature.RING_PLATEAU_BY_STEPS):
        return factor
    steps = (2 if collective == Collective.ALL_REDUCE else 1) * (shape.nranks - 1)
    grown = 1 - (tc.RING_PLATEAU_DELTA / (factor - 1)) ** max(steps - 1, 0)
    faded = min(max(share / tc.RING_PLATEAU_FADES - 1, 0.0), 1.0)
    return 1 + grown * (factor - 1 - tc.RING_PLATEAU_DELTA * faded)


def _on_plateau(shape: CommShape, collective: str) -> bool:
    if shape.nodes > 1:
        return collective == Collective.ALL_REDUCE
    ring = shape.graphs.get(Graph.RING)
    on_nvlink = ring is not None and ring.type_intra == path_types(shape.minor).nvl
    blackwell = has(shape.minor, Feature.RING_PLATEAU_ON_BLACKWELL) and shape.min_sm >= 100
    summed = collective == Collective.ALL_REDUCE and has(shape.minor, Feature.RING_PLATEAU_BY_STEPS)
    return blackwell and on_nvlink and (collective in SHARDED or summed)


def _corrected_sizes(shape: CommShape, algorithm: str) -> int:
    if algorithm == Algorithm.TREE:
        return tc.TREE_CORRECTION_SIZES
    blackwell = has(shape.minor, Feature.NVLS_TREE_CORRECTED) and shape.min_sm >= 100
    if algorithm != Algorithm.NVLS_TREE or not blackwell:
        return 0
    if shape.cpu_arch == CpuArch.X86:
        return tc.NVLS_TREE_CORRECTION_SIZES
    gpus = {tc.NVLS_TREE_ARM_GPUS} == set(shape.local_ranks)
    if shape.cpu_arch != CpuArch.ARM or not gpus or shape.min_net_gbs < tc.NVLS_TREE_ARM_NET_GBS:
        return 0
    small = tc.NVLS_TREE_CORRECTION_ARM[shape.minor]
    return tc.NVLS_TREE_CORRECTION_SIZES if small and shape.nodes > 2 else small


def choose(shape: CommShape, table: TuningTable, settings: Settings, collective: str, nbytes: int) -> Choice | None:
    """What NCCL would run, or None where it has nothing to run (a list of NCCL_ALGO or NCCL_PROTO that leaves none or
    that it refuses, an unknown collective, no size of an operation). `nbytes` as `Choice.bytes`."""
    return next(iter(sweep(shape, table, settings, collective, (nbytes,))), None)


def sweep(
    shape: CommShape, table: TuningTable, settings: Settings, collective: str, sizes: Iterable[int]
) -> tuple[Choice, ...]:
    """The choice for every size that has one, in the order given."""
    cells = _timed(shape, table, settings, collective)
    choices = (_fastest(shape, cells, collective, nbytes) for nbytes in sizes if 0 < nbytes <= MOST_BYTES)
    return tuple(choice for choice in choices if choice is not None)


def _timed(shape: CommShape, table: TuningTable, settings: Settings, collective: str) -> list[_Timed]:
    """The cells that may run, in the order in which NCCL compares them."""
    cells = _available(shape, table, settings, collective)
    if shape.nranks <= 1:
        return [(algorithm, protocol, lambda _: 0.0) for algorithm, protocol, *_ in cells]
    return [
        (algorithm, protocol, predicted_us(shape, Cell(collective, algorithm, protocol), (latency, bandwidth)))
        for algorithm, protocol, latency, bandwidth in cells
    ]


def _fastest(shape: CommShape, cells: list[_Timed], collective: str, nbytes: int) -> Choice | None:
    best: tuple[float, str, str] | None = None
    for algorithm, protocol, time_us in cells:
        time = time_us(nbytes)
        if best is None or time < best[0]:
            best = time, algorithm, protocol
    if best is None:
        return None
    time, algorithm, protocol = best
    busbw = nbytes / (1000 * time) * busbw_factor(collective, shape.nranks) if time > 0 else 0.0
    return Choice(collective, nbytes, algorithm, protocol, time, busbw)


def _available(shape: CommShape, table: TuningTable, settings: Settings, collective: str) -> list[_Cell]:
    """The cells that may run, in the order in which NCCL compares them."""
    if collective not in tc.COLLECTIVES:
        return []
    if shape.nranks <= 1:
        return [(Algorithm.RING.value, Protocol.SIMPLE.value, 0.0, 0.0)]
    rows = table.get(collective, {})
    cells = _usable({a: row for a, row in rows.items() if not _unavailable(shape, collective, a)})
    if shape.nodes != shape.nranks and has(shape.minor, Feature.PAT_OVER_NVLS):
        # NCCL gives it half of all time, so that it runs where a list leaves nothing else.
        cells = [cell for cell in cells if cell[0] != Algorithm.PAT] or cells
    if not cells and has(shape.minor, Feature.RING_BACKUP):
        # What the lists left has no kernel for this operation: rings come back.
        lists = allowed(settings, shape.minor)
        cells = _usable({Algorithm.RING: ring_backup(Model(shape, settings), lists, collective)})
    return cells[::-1] if has(shape.minor, Feature.LAST_OF_EQUALS) else cells


def _usable(rows: Mapping[str, Mapping[str, tuple[float, float]]]) -> list[_Cell]:
    return [
        (algorithm, protocol, *rows[algorithm][protocol])
        for algorithm in tc.ALGORITHMS
        for protocol in tc.PROTOCOLS
        if algorithm in rows and rows[algorithm].get(protocol, (0.0, 0.0))[1] > 0
    ]


def _unavailable(shape: CommShape, collective: str, algorithm: str) -> bool:
    """What NCCL passes over when an operation is enqueued, whatever its table says."""
    minor, most = shape.minor, max(shape.local_ranks, default=0)
    if algorithm in COLLNET:
        bound = Feature.COLLNET_DIRECT_BOUND if algorithm == Algorithm.COLLNET_DIRECT else Feature.COLLNET_CHAIN_BOUND
        return not shape.collnet or (has(minor, bound) and most > DIRECT_RANKS)
    if algorithm not in NVLS_FAMILY:
        return False
    if shape.nvls_channels <= 0:
        return True
    if algorithm == Algorithm.NVLS and shape.nodes > 1 and not shape.collnet:
        return True
    if collective not in SHARDED:
        return False
    graph = shape.graphs.get(Graph.NVLS)
    if has(minor, Feature.NVLS_CHANNELS_BOUND) and graph is not None and graph.channels > NVLS_RANKS:
        return True
    if has(minor, Feature.SHARDED_NVLS_OVER_NODES):
        return most > NVLS_RANKS
    return shape.nodes > 1 or (has(minor, Feature.NVLS_BOUND) and shape.nranks > NVLS_RANKS)
