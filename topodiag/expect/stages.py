"""What bounds a collective where NCCL's own figure only ranks its algorithms and is not meant as a prediction.

NVLSTree and several racks are priced by their slowest stage, in a domain or across; NVLS on Blackwell by the figure of
NCCL 2.27 under any version, of which published nodes and racks reach the same share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import fsum

from topodiag.expect.setup import Setup
from topodiag.hardware import catalog
from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import busbw_factor
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import Feature, has, minor_of, spell_version
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.prediction import Choice, Prediction
from topodiag.nccl.topo.changes import gpus_of
from topodiag.nccl.tuning import tuning_constants
from topodiag.nccl.tuning.choice import LARGE_BYTES
from topodiag.words.units import in_gbs

Terms = tuple[tuple[str, str, str], ...]

_BLACKWELL_SM, _BLACKWELL_ROW = 100, 3
_NVLS_REFERENCE = Feature.NVLS_EFFICIENCY.since - 1
"""From 2.28 on NCCL's figure for NVLS holds constants (nvlsEfficiency, src/graph/tuning.cc) that part 8 GPUs from 72
more than runs do: on Blackwell 0.91 to 1.15 of it are published, 0.79 to 0.89 of the figure before."""


@dataclass(frozen=True, slots=True)
class Staged:
    """`scale` is what to multiply NCCL's figure by; `across`: whether the way between domains is the slowest stage."""

    scale: float = 1.0
    terms: Terms = ()
    across: bool = True


def stages(setup: Setup, predicted: Prediction, choice: Choice) -> Staged:
    """NCCL's figure where its slowest stage is known better."""
    racks = -(-setup.nodes // setup.domain) if setup.domain > 1 else 1
    if racks == 1 and (choice.algorithm != "NVLSTree" or setup.nodes == 1):
        return Staged(*_reference_nvls(setup, choice))
    nodes = racks if setup.domain > 1 else setup.nodes
    network = network_gbs(predicted) if setup.domain == 1 else setup.domain * fsum(net_speeds(setup.tree)) / 8
    factor = busbw_factor(choice.collective, setup.ranks)
    if choice.collective == "AllReduce":
        across = network * factor * nodes / (2 * (nodes - 1))
        formula = f"{in_gbs(network)} of NICs per domain x {factor:.3f} x {nodes}/(2 x {nodes - 1})"
        inside = _inside(setup) if setup.domain == 1 else choice.busbw_gbs * _reference_nvls(setup, choice)[0]
    else:
        across = network * factor * nodes / (nodes - 1)
        formula = f"{in_gbs(network)} of NICs per domain x {factor:.3f} x {nodes}/{nodes - 1}"
        inside = choice.busbw_gbs
    terms = [("stage inside a node or rack", in_gbs(inside), "the same collective in one NVLink domain")]
    if setup.domain > 1 and nodes > 2 and choice.algorithm == "NVLS":
        few, many = _tree_caps(setup)
        inside *= many / few
        words = f"x {many:g}/{few:g}: NCCL's bounds per channel of NVLSTree on Blackwell, two domains and more"
        terms.append(("stage of the tree over racks", in_gbs(inside), words))
    least = min(inside, across)
    terms.append(("stage across", in_gbs(across), formula))
    return Staged(least / choice.busbw_gbs, tuple(terms), across <= inside)


def _tree_caps(setup: Setup) -> tuple[float, float]:
    """GB/s of a channel of NVLSTree on two and on more domains: perChMaxNVLSTreeBw of src/graph/tuning.cc."""
    caps = tuning_constants.constants(max(minor_of(setup.version), Feature.NVLS_EFFICIENCY.since)).nvls_tree
    return tuning_constants.cap(caps, _BLACKWELL_ROW, 2), tuning_constants.cap(caps, _BLACKWELL_ROW, 3)


def _reference_nvls(setup: Setup, choice: Choice) -> tuple[float, Terms]:
    if choice.algorithm != "NVLS" or setup.version == _nvls_version(setup) or choice.busbw_gbs <= 0:
        return 1.0, ()
    gbs = _figure(setup, choice.collective, min(setup.nodes, setup.domain), setup.env, "NVLS")
    if not gbs:
        return 1.0, ()
    words = f"as NCCL {spell_version(_NVLS_REFERENCE)} models it: later figures only rank algorithms on such GPUs"
    return gbs / choice.busbw_gbs, (("NVLS", in_gbs(gbs), words),)


def _nvls_version(setup: Setup) -> str:
    """The version whose figure for NVLS counts."""
    later = setup.sm >= _BLACKWELL_SM and has(minor_of(setup.version), Feature.NVLS_EFFICIENCY)
    return spell_version(_NVLS_REFERENCE) if later else setup.version


def _figure(setup: Setup, collective: str, nodes: int, env: Mapping[str, str], algorithm: str = "") -> float | None:
    prediction = predict_tree(setup.tree, nodes=nodes, version=_nvls_version(setup), env=env, sizes=(LARGE_BYTES,))
    choices = (choice for choice in prediction.choices if choice.collective == collective)
    return next((choice.busbw_gbs for choice in choices if algorithm in ("", choice.algorithm)), None)


def _inside(setup: Setup) -> float:
    """The all_reduce of one node alone, the slowest one: NVLS where NVLSTree runs."""
    kinds = setup.unlike.kinds if setup.unlike is not None else ((setup.tree, tuple(setup.env.items())),)
    inside = []
    for tree, given in kinds:
        env = {name: value for name, value in given if name != "NCCL_ALGO"}
        inside.append(_figure(replace(setup, tree=tree), "AllReduce", 1, env) or float("inf"))
    return min(inside)


def network_gbs(predicted: Prediction) -> float:
    """What the ring search found for all NICs of a node together, GB/s in one direction."""
    ring = predicted.graph(0)
    return ring.channels * ring.bw_inter if ring is not None else 0.0


NEAR = 0.9
"""Of a port's line rate: NCCL reckons 24 GB/s for 200 Gb/s, and what falls short of this share is bound by PCIe."""


def behind_pcie(tree: Element) -> bool:
    """Whether every NIC's slot carries less than its port."""
    slots = [pci for pci in tree.walk() if pci.tag == "pci" and pci.having("nic")]
    return bool(slots) and all(_slot_gbs(pci) < NEAR * fsum(net_speeds(pci)) / 8 for pci in slots)


def _slot_gbs(pci: Element) -> float:
    link = pcie_link(pci)
    return (catalog.pcie_nccl_gbs(*link) if link is not None else None) or float("inf")


_NVLINK_CLASSES = ("0x030200", "0x068000", "0x068001")
_LINE_OVER_NCCL = {60: 20 / 18, 70: 25.781 / 20, 80: 25.0 / 20, 86: 14.0625 / 12, 90: 26.562 / 20.6, 100: 53.125 / 40.1}
"""Line rate of an NVLink over what NCCL reckons for it, by compute capability; NVIDIA's datasheets (nvidia-smi's rate
per link) and src/graph/topo.h v2.28."""

_NVLS_SM = 90
UNKNOWN_PCIE_GBS = 64.0
"""PCIe 5.0 x16 after line coding, where the tree does not say: the fastest that GPUs of today have."""

GENERATIONS = {"2.5": 1, "5.0": 2, "5": 2, "8.0": 3, "8": 3, "16.0": 4, "16": 4, "32.0": 5, "32": 5, "64.0": 6}
"""PCIe generations by the GT/s that NCCL's files name."""

Term = tuple[str, str, str]


def limit_of(setup: Setup, collective: str) -> tuple[float, Term]:
    """GB/s of bus bandwidth, and the term of the derivation."""
    n, nodes = setup.ranks, -(-setup.nodes // setup.domain)
    gpu, how = _gpu_line(setup)
    parts = []
    if setup.per_node * setup.domain > 1 and gpu > 0:
        inside = gpu
        if collective == "all_reduce" and setup.sm >= _NVLS_SM and "NVSwitch" in how:
            group = min(setup.per_node * setup.domain, n)
            inside = gpu * 2 * (n - 1) / n * group / (group + 1)
            how += f", NVLS: x {inside / gpu:.3f}"
        parts.append((inside, how))
    if nodes > 1:
        wires = setup.domain * fsum(net_speeds(setup.tree)) / 8
        across = wires * _across(collective, n, nodes, setup.per_node * setup.domain)
        parts.append((across, f"{in_gbs(wires)} of NICs leaving {'a rack' if setup.domain > 1 else 'a node'}"))
    limit, why = min(parts, default=(float("inf"), "no link is known"))
    return limit, ("physical limit", in_gbs(limit), why)


def _across(collective: str, n: int, nodes: int, group: int) -> float:
    """Bus bandwidth per GB/s of a domain's NICs."""
    if collective == "all_reduce":
        # In-network reduction needs S in and out; without it a node moves 2 S (N-1)/N. At N = 2 they are the same.
        return busbw_factor("AllReduce", n) * (1.0 if nodes > 2 else nodes / (2 * (nodes - 1)))
    share = (n - 1) / n
    if collective in ("all_gather", "reduce_scatter"):
        return share * nodes / (nodes - 1)
    if collective in ("alltoall", "alltoallv"):
        return (n - 1) / (group * (n - group))
    if collective in ("gather", "scatter"):
        return (n - 1) / (n - group)
    return 1.0


def _gpu_line(setup: Setup) -> tuple[float, str]:
    """The line rate of one GPU towards its peers in the node, the least of all GPUs, and what it is."""
    rates = [_nvlink_line(pci, setup.sm) for pci in gpus_of(setup.tree).values()]
    if rates and all(rate > 0 for rate, _ in rates):
        rate, switch = min(rates)
        return rate, f"{in_gbs(rate)} of NVLink per GPU" + (" to NVSwitch" if switch else "")
    rate = min(map(_pcie_line, gpus_of(setup.tree).values()), default=UNKNOWN_PCIE_GBS)
    some = max((rate for rate, _ in rates), default=0.0)
    if some > rate:
        # Pairs of GPUs with bridges: what leaves a pair goes over PCIe, what stays does not.
        return max(rate, some if len(rates) == 2 else rate), "NVLink of some GPUs, PCIe of the others"
    return rate, f"{in_gbs(rate)} of PCIe per GPU"


def _nvlink_line(pci: Element, sm: int) -> tuple[float, bool]:
    gpu = next(iter(pci.having("gpu")), None)
    if gpu is None:
        return 0.0, False
    links = [link for link in gpu.having("nvlink") if (link.get("tclass") or "") in _NVLINK_CLASSES]
    count = sum(link.number("count") for link in links)
    above = max((collective for collective in _LINE_OVER_NCCL if collective <= sm), default=60)
    line = catalog.nvlink_nccl_gbs(sm) * _LINE_OVER_NCCL[above]
    return count * line, any((link.get("tclass") or "") != "0x030200" for link in links)


def _pcie_line(pci: Element) -> float:
    link = pcie_link(pci)
    return (catalog.pcie_line_gbs(*link) if link is not None else None) or UNKNOWN_PCIE_GBS


def pcie_link(pci: Element) -> tuple[int, int] | None:
    """Generation and lanes of a function's link; None where the tree does not say them."""
    gen = GENERATIONS.get((pci.get("link_speed") or "").partition(" ")[0])
    width = pci.number("link_width", -1)
    return (gen, width) if gen is not None and width >= 0 else None


def net_speeds(tree: Element) -> list[float]:
    """Gb/s of every NIC of the tree."""
    texts = [element.get("speed") or "" for element in tree.walk() if element.tag == "net"]
    return [int(text) / 1000 for text in texts if text.isdecimal() and len(text) < 9]
