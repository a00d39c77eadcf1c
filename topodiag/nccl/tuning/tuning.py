"""The tuning table: predicted latency and bandwidth of every collective, algorithm and protocol, and why it says so.

Source: ncclTopoTuneModel in src/graph/tuning.cc, since 2.31 ncclTuningCostModelInit in src/tuning/cost_model.cc: the
model (`tuning_terms`), then what is switched off. Not known from a topology: a tuner plugin, symmetric-memory kernels
(2.27+), copy-engine collectives (2.28+), which all pass this table by, and MNNVL under 2.20, which counts as one node
there without NVLS.
"""

from __future__ import annotations

from topodiag.model.nccl_enums import COLLNET, NVLS_FAMILY, Algorithm, Collective, Protocol
from topodiag.model.nccl_versions import ByVersion, Feature, has, spell_version
from topodiag.nccl.graph.graph import CommShape
from topodiag.nccl.prediction import Term, TuningTable
from topodiag.nccl.settings import Settings
from topodiag.nccl.tuning.tuning_constants import COLLECTIVES, PROTOCOLS, algorithms
from topodiag.nccl.tuning.tuning_lists import Allowed, allowed
from topodiag.nccl.tuning.tuning_model import Cell, Model, Steps
from topodiag.nccl.tuning.tuning_terms import applies, bandwidth, considered, latency

_LL128_GPUS = ByVersion({18: (70, 80, 90), 25: (70, 80, 90, 100, 120)})
"""Compute capabilities with LL128 by default, before LL128_FROM_VOLTA."""


def tuning_table(shape: CommShape, settings: Settings) -> TuningTable:
    """The table of a communicator. A (0, 0) cell is a combination that the version does not have here; a bandwidth of
    0 with a latency is one that is switched off. Where NCCL refuses NCCL_ALGO or NCCL_PROTO (`tuning_lists.allowed`
    gives its words) every bandwidth is 0. Never raises.
    """
    model, lists = Model(shape, settings), allowed(settings, shape.minor)
    table: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for collective in COLLECTIVES:
        table[collective] = {
            algorithm: {protocol: _entry(model, lists, Cell(collective, algorithm, protocol)) for protocol in PROTOCOLS}
            for algorithm in algorithms(shape.minor)
        }
        if (
            has(shape.minor, Feature.RING_BACKUP)
            and model.n > 1
            and not any(bw for row in table[collective].values() for _, bw in row.values())
        ):
            table[collective][Algorithm.RING] = ring_backup(model, lists, collective)
    return table


def _entry(model: Model, lists: Allowed, cell: Cell) -> tuple[float, float]:
    if not applies(model, cell):
        return 0.0, 0.0
    steps = Steps()
    return latency(model, cell, steps), 0.0 if disabled(model, lists, cell) else bandwidth(model, cell, steps)


def ring_backup(model: Model, lists: Allowed, collective: str) -> dict[str, tuple[float, float]]:
    """The ring that NCCL with RING_BACKUP falls back to when a user's lists leave nothing for a collective. With
    BACKUP_KEEPS_PROTOCOLS those that are switched off stay so."""
    rates = {}
    for protocol in PROTOCOLS:
        cell = Cell(collective, Algorithm.RING, protocol)
        off = model.has(Feature.BACKUP_KEEPS_PROTOCOLS) and _protocol_off(model, lists, cell)
        usable = applies(model, cell) and not off
        rates[protocol] = latency(model, cell, Steps()), bandwidth(model, cell, Steps()) if usable else 0.0
    return rates


def disabled(model: Model, lists: Allowed, cell: Cell) -> str:
    """Why a combination that the version has is not used, "" when it is."""
    if lists.fault:
        return f"NCCL refuses {lists.fault_in}: {lists.fault}"
    return _protocol_off(model, lists, cell) or _algorithm_off(model, lists, cell)


def _algorithm_off(model: Model, lists: Allowed, cell: Cell) -> str:
    algorithm = cell.algorithm
    other_ring = algorithm == Algorithm.RING and cell.collective != Collective.ALL_REDUCE
    if other_ring and not model.has(Feature.RING_MAY_BE_LEFT_OUT):
        return ""  # so that programs run with NCCL_ALGO=Tree
    if why := _missing(model, algorithm):
        return why
    if lists.algorithms.get((cell.collective, algorithm), not _left_to_lists(model, lists, cell.collective)):
        return ""
    ignored = not model.has(Feature.COLLNET_LISTS_HOLD) and algorithm in (Algorithm.RING, Algorithm.TREE)
    if ignored and _only_collnet(model, lists, cell.collective):
        return ""
    return f"NCCL_ALGO={model.settings.algo} leaves it out"


def _missing(model: Model, algorithm: str) -> str:
    if algorithm == Algorithm.NVLS_TREE and model.nodes == 1:
        return "NVLSTree is for more than one node"
    if not model.shape.collnet:
        if algorithm in COLLNET:
            return "CollNet is off"
        if algorithm == Algorithm.NVLS and model.nodes > 1:
            return "NVLS between nodes needs CollNet, which is off"
    on_switch = model.has(Feature.COLLNET_DIRECT_ON_NVSWITCH)
    if algorithm == Algorithm.COLLNET_DIRECT and on_switch and not model.shape.nvs:
        return "CollNetDirect needs an NVSwitch"
    return ""


def _only_collnet(model: Model, lists: Allowed, collective: str) -> bool:
    """Whether a list names nothing but a CollNet that is off: before COLLNET_LISTS_HOLD it is ignored."""
    others = (Algorithm.RING, Algorithm.TREE, *NVLS_FAMILY)
    named = [a for a in others if lists.algorithms.get((collective, a), True) and not _missing(model, a)]
    return not model.shape.collnet and not named


def _left_to_lists(model: Model, lists: Allowed, collective: str) -> bool:
    """Whether NCCL_ALGO is set and speaks of other collectives, and NCCL_PROTO of this one: nothing is left then."""
    if not model.settings.algo or not model.has(Feature.ALGO_LIST_IS_ALL):
        return False
    return any(named == collective for named, _ in lists.protocols)


def _protocol_off(model: Model, lists: Allowed, cell: Cell) -> str:
    listed = lists.protocols.get((cell.collective, cell.protocol))
    if listed is None:
        return _ll128_off(model, cell) if cell.protocol == Protocol.LL128 else ""
    return "" if listed else f"NCCL_PROTO={model.settings.proto} leaves it out"


def _ll128_off(model: Model, cell: Cell) -> str:
    """LL128 relies on 128-byte stores that arrive whole; NCCL uses it unasked only where that is known."""
    shape, types, graph = model.shape, model.types, model.graph(cell.algorithm)
    hopper = shape.min_sm >= 90
    most = types.pxn if hopper and (model.settings.ll128_c2c or not model.has(Feature.LL128_C2C)) else types.pxb
    # PXN and what ranks below it: P2C where there is one.
    if graph.type_inter > most:
        return f"LL128 needs GPUs within {types.names[most]} of the NIC, not {_name(model, graph.type_inter)}"
    if graph.type_intra > types.nvb:
        return f"LL128 needs NVLink between the GPUs of a node, not {_name(model, graph.type_intra)}"
    if shape.min_sm != shape.max_sm and not (hopper and model.has(Feature.LL128_ON_MIXED_HOPPER)):
        return f"LL128 needs equal GPUs, not {shape.min_sm / 10:g} and {shape.max_sm / 10:g}"
    if model.has(Feature.LL128_FROM_VOLTA):
        known = shape.min_sm >= 70
    else:
        known = shape.min_sm in _LL128_GPUS[model.minor]
    return "" if known else f"LL128 is not on by default for compute capability {shape.min_sm / 10:g}"


def _name(model: Model, number: int) -> str:
    names = model.types.names
    return names[number] if 0 <= number < len(names) else str(number)


def explain_entry(
    shape: CommShape, settings: Settings, collective: str, algorithm: str, protocol: str
) -> tuple[Term, ...]:
    """Every step of one cell of the table, bandwidth first, then latency; what switches it off comes last.

    Names as in the table. An unknown name, or a combination that the version lacks, gives one term that says so.
    """
    cell = Cell(collective, algorithm, protocol)
    label = f"{collective} {algorithm} {protocol}"
    known = collective in COLLECTIVES and algorithm in algorithms(shape.minor) and protocol in PROTOCOLS
    if not known or not considered(shape.minor, cell):
        return (Term(label, "not used", f"NCCL {spell_version(shape.minor)} has no such combination"),)
    model, steps = Model(shape, settings), Steps()
    if not applies(model, cell):
        return (Term(label, "not used", _why_not(model, cell)),)
    bandwidth(model, cell, steps)
    latency(model, cell, steps)
    if why := disabled(model, allowed(settings, shape.minor), cell):
        steps.terms.append(Term(label, "off", why))
    return tuple(steps.terms)


def _why_not(model: Model, cell: Cell) -> str:
    if model.n <= 1:
        return "one rank has nothing to exchange"
    if cell.algorithm == Algorithm.PAT:
        return f"PAT is for one GPU per node (NCCL_PAT_ENABLE={model.settings.pat_enable})"
    return f"{cell.algorithm} needs two channels of the NVLS graph at least"
