"""The parts of a sweep in words: what is at fault, what cannot be told apart, and what to look at."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.model.bench import SLOW_PLACEMENT
from topodiag.model.sweep import Fabric, Fault, JudgedRun
from topodiag.words.fold import fold_numbers, grouped, numbered
from topodiag.words.units import in_gbs, percent, spell_gbs

_PORT = frozenset({"link", "pcie"})
GAP_ID = "BEN005"
SEVERE_SHARE = 1 - SLOW_PLACEMENT
"""BEN005's 30 %: from here on a cell is red."""


def severe(fault: Fault) -> bool:
    """Whether it is BEN005: more than 30 % slower than other placements of the same collective."""
    return fault.share is not None and fault.share < SEVERE_SHARE


def fault_words(fault: Fault, fabric: Fabric) -> list[str]:
    """One phrase a place; more than one where it is one of them."""
    ports = grouped(((part.place, part.rail), part.kind) for part in fault.parts if part.kind in _PORT)
    by_node = grouped(((node, frozenset(kinds)), rail) for (node, rail), kinds in ports.items())
    lines = [_port(node, rails, kinds, fabric) for (node, kinds), rails in by_node.items()]
    others = grouped(((part.kind, part.place), part.rail) for part in fault.parts if part.kind not in _PORT)
    return [_path_text(kind, place, rails) for (kind, place), rails in others.items()] + lines


def _port(node: str, rails: Sequence[int], kinds: frozenset[str], fabric: Fabric) -> str:
    if len(rails) > 1:
        return f"one of rails {fold_numbers(rails)} of {node}"
    nic = fabric.nic(rails[0])
    name = f"{nic} of {node} (rail {rails[0]})" if nic else f"rail {rails[0]} of {node}"
    if kinds == {"pcie"}:
        return f"the PCIe way from GPU {fabric.gpu_of(rails[0])} to {name}"
    return name


def _path_text(kind: str, place: str, rails: Sequence[int]) -> str:
    on = "" if list(rails) == [-1] else f", {numbered('rail', rails)}"
    match kind:
        case "leaf":
            return f"the leaf of {place}{on}" if len(rails) == 1 else f"one of the leaves of {place}{on}"
        case "uplink":
            return f"the uplinks of the leaf of {place}{on}"
        case "between":
            return f"what joins the leaves of {place}{on}"
        case "gpu":
            return f"GPU {rails[0]} of {place}" if len(rails) == 1 else f"one of GPUs {fold_numbers(rails)} of {place}"
        case "board":
            return f"the GPUs of {place} or their NVLink as a whole"
        case "host":
            return f"what all rails of {place} share"
        case _:
            return f"the path between {place}" if " and " in place and "GPU" not in place else f"the path {place}{on}"


def untold(fault: Fault) -> str:
    """What the runs cannot tell apart in a place that is named, or ""."""
    kinds = {part.kind for part in fault.parts}
    if kinds == {"link", "pcie"}:
        return "the NIC, its cable, the leaf's port and the GPU's PCIe way to the NIC look alike in these runs"
    if kinds == {"link"}:
        return "the NIC, its cable and the leaf's port look alike in these runs"
    if kinds == {"host"}:
        return "slow only when all rails run at once: CPU, memory, PCIe root and power look alike in these runs"
    if kinds == {"uplink"}:
        return "which of the uplinks it is, no benchmark says"
    if kinds == {"between"}:
        return "whose uplinks they are, and which, no benchmark says of two racks"
    return ""


def look_at(fault: Fault, fabric: Fabric) -> list[str]:
    """What to do next about a confirmed fault."""
    part = fault.parts[0]
    kinds = {part.kind for part in fault.parts}
    nic = fabric.nic(part.rail) or "DEVICE"
    scan = f"topodiag scan on {part.place}"
    if kinds <= _PORT:
        lines = [f"{scan}: checks NIC and PCI"]
        if "link" in kinds:
            lines.append(f"mlxlink -d {nic} -m -c -e on {part.place}: width, errors and the cable; then swap the cable")
        if kinds == {"link", "pcie"}:
            lines.append("topodiag bench run DIR --ib-write-bw: a round more tells the link from the PCIe way")
        return lines
    match part.kind:
        case "gpu":
            return [f"{scan}: checks NVL and PCI", f"nvidia-smi -q -i {part.rail} on {part.place}: clocks, throttling"]
        case "board" | "host":
            return [f"{scan}: all checks"]
        case "between":
            rail = f", rail {part.rail}" if part.rail >= 0 else ""
            return [f"counters, firmware and routing of the uplinks on the leaves of both racks{rail}"]
        case "leaf" | "uplink":
            return [f"the switch's counters, firmware and routing: {_path_text(part.kind, part.place, [part.rail])}"]
        case _:
            return ["routing: ibtracert between the two, or the switches' ECMP hashing"]


def run_words(judged: JudgedRun) -> str:
    """`1-pairs-a+b: 22.1 GB/s, 49 % of 45`."""
    if judged.gbs is None:
        return f"{judged.run.id}: {judged.why or judged.standing.value}"
    beside = f", {percent(judged.share)} of {spell_gbs(judged.reference)}" if judged.share and judged.reference else ""
    return f"{judged.run.id}: {in_gbs(judged.gbs)}{beside}"
