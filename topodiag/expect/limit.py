"""The bus bandwidth that no healthy machine of this build can exceed: wire rates, without any overhead.

Per collective of size S on n ranks, from the bytes that must enter the slowest part. Inside an NVLink domain with
in-switch reduction (NVLS) a GPU moves S x (n+1)/n instead of 2 S (n-1)/n, so that bus bandwidth may exceed the line
rate (nccl-tests, doc/PERFORMANCE.md; Klenk et al., An in-network architecture for accelerating shared-memory
multiprocessor collectives, ISCA 2020). Between N nodes an all_reduce moves 2 S (N-1)/N through a node's NICs, half of
it at N = 2 relative to a ring, and S where switches reduce (SHARP).
"""

from __future__ import annotations

from math import fsum

from topodiag.expect.setup import Setup
from topodiag.hardware import catalog
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.changes import gpus_of
from topodiag.nccl.tuning.choice import busbw_factor
from topodiag.words.units import in_gbs

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
    lanes = [_pcie_line(pci) for pci in gpus_of(setup.tree).values()]
    rate = min(lanes, default=UNKNOWN_PCIE_GBS)
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
