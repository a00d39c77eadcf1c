"""The parts of a sweep in words: what is at fault, what cannot be told apart, and what to look at."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.model.bench import SLOW_PLACEMENT
from topodiag.model.sweep import Fabric, Fault, JudgedRun
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_numbers, grouped, in_gbs, numbered, percent, spell_gbs

_WORDS = own_data("sweep/words")
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
    if kind == "path" and " and " in place and "GPU" not in place:
        kind = "nodes"
    several = _WORDS["several"] if len(rails) > 1 else {}
    text: str = several.get(kind, _WORDS["places"][kind])
    return text.format(place=place, on=_on(rails), rails=fold_numbers(rails))


def _on(rails: Sequence[int]) -> str:
    """`, rail 3`; "" for a part that is of all rails."""
    return "" if list(rails) == [-1] else f", {numbered('rail', rails)}"


def untold(fault: Fault) -> str:
    """What the runs cannot tell apart in a place that is named, or ""."""
    words: str = _WORDS["untold"].get(" ".join(sorted({part.kind for part in fault.parts})), "")
    return words


def look_at(fault: Fault, fabric: Fabric) -> list[str]:
    """What to do next about a confirmed fault."""
    (kind, place, rail), kinds = fault.parts[0], {part.kind for part in fault.parts}
    if kinds <= _PORT:
        kind = " ".join(sorted(kinds))
    elif kind in _PORT:
        kind = "path"
    path = "" if kinds <= _PORT else _path_text(kind, place, [rail])
    given = {"place": place, "rail": rail, "on": _on([rail]), "nic": fabric.nic(rail) or "DEVICE", "path": path}
    return [line.format(**given) for line in _WORDS["look_at"][kind]]


def run_words(judged: JudgedRun) -> str:
    """`1-pairs-a+b: 22.1 GB/s, 49 % of 45`."""
    if judged.gbs is None:
        return f"{judged.run.id}: {judged.why or judged.standing.value}"
    beside = f", {percent(judged.share)} of {spell_gbs(judged.reference)}" if judged.share and judged.reference else ""
    return f"{judged.run.id}: {in_gbs(judged.gbs)}{beside}"
