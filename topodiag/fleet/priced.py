"""What a difference between siblings costs, by the price of the node's own checks; where there is none, why not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Any

from topodiag.checks.shared.prices import missing_nvlinks, narrow_link, slow_nvlinks, slow_ports
from topodiag.fleet.digest import Digest
from topodiag.fleet.facts import BANDWIDTH
from topodiag.hardware.catalog import gpu_by_name, pcie_nccl_gbs
from topodiag.lazy import dataclass, regex
from topodiag.words.own_data import own_data
from topodiag.words.units import read_number

Difference = tuple[str, str, str]
"""Part, its value, and what siblings have."""

_STATES = regex(r"([0-9]{1,4}) ([a-z]{1,20})")
_UP = ("active", "sleep")
_RATED = ("highest generation", "slot's highest generation")
_NO_WIRE = "no link is narrower for it, so topology does not say how much"


@dataclass(frozen=True, slots=True)
class Price:
    """GB/s that are lost at the narrowest place, in one direction; None with the reason."""

    gbs: float | None
    why_not: str = ""


def price_of(family: str, key: str, differences: Sequence[Difference], node: Digest) -> Price:
    """What these parts of a node lose, all of which differ in one fact."""
    lost: list[float | None] = []
    if (family, key) in _RULES:
        node_facts, (read, rule) = _NodeFacts(node), _RULES[family, key]
        for part, value, usual in differences:
            now, want = read(value), read(usual)
            lost.append(None if now is None or want is None else rule(node_facts, part, now, want))
    known = [price for price in lost if price is not None and math.isfinite(price)]
    if not known or len(known) < len(lost):
        return Price(None, own_data("fleet/families")["without_price"].get(family, _NO_WIRE))
    worst = fsum(known) if family == "nic" else max(known)  # ports add up, a ring passes the narrowest link
    return Price(round(worst, 3)) if worst > 0 else Price(None, "it has no less than its peers")


class _NodeFacts:
    """The facts of a node by family, part and key."""

    def __init__(self, node: Digest) -> None:
        self.values: Mapping[tuple[str, str, str], str] = {
            (facts.family, part, key): value for facts in node.facts for (part, key, _), value in facts.values
        }

    def rates(self, card: str = "") -> list[float]:
        """Gb/s of the ports of compute cards that are up, or of one card."""
        return [
            rate
            for (family, part, key), value in self.values.items()
            if (family, key) == ("nic", "rate") and part.startswith(f"{card}/" if card else "")
            if (rate := read_number(value)) is not None
        ]

    def able_gen(self, part: str) -> float | None:
        """The generation that both ends of the link of a part can do."""
        known = [read_number(self.values.get(("pci", part, key), "")) for key in _RATED]
        return min((gen for gen in known if gen is not None), default=None)

    def nvlink_gbs(self, part: str) -> float:
        """What NCCL reckons for an NVLink of a GPU; 0 where the product is not known or has none."""
        spec = gpu_by_name(self.values.get(("gpu", part, "name"), ""))
        return spec.nvlink_nccl_gbs if spec is not None else 0.0


def _width(node_facts: _NodeFacts, part: str, now: float, full: float) -> float | None:
    gen = node_facts.able_gen(part)
    return _link(node_facts, part, (gen, now), (gen, full))


def _generation(node_facts: _NodeFacts, part: str, now: float, full: float) -> float | None:
    width = read_number(node_facts.values.get(("pci", part, "width"), ""))
    return _link(node_facts, part, (now, width), (full, width))


def _link(
    node_facts: _NodeFacts, part: str, now: tuple[float | None, float | None], full: tuple[float | None, float | None]
) -> float | None:
    """The loss of the link of a GPU, or of a card for jobs, from generation and width."""
    is_gpu = ("gpu", part, "name") in node_facts.values
    if not is_gpu and node_facts.values.get(("nic", part, "role")) != "compute":
        return None
    left, whole = _gbs(*now), _gbs(*full)
    rates = [] if is_gpu else node_facts.rates(part)
    return None if left is None or whole is None else narrow_link(left, whole, fsum(rates) / 8 if rates else None)


def _gbs(gen: float | None, width: float | None) -> float | None:
    return pcie_nccl_gbs(int(gen), int(width)) if gen and width else None


def _nvlinks(node_facts: _NodeFacts, part: str, up: int, want: int) -> float | None:
    gbs = node_facts.nvlink_gbs(part)
    return missing_nvlinks(up, want, gbs) if gbs else None


def _up(links: str) -> int | None:
    """The links that carry data in `12 active, 6 inactive`."""
    states = _STATES.findall(links)
    return sum(int(count) for count, state in states if state in _UP) if states else None


def _line_rate(node_facts: _NodeFacts, part: str, rate: float, want: float) -> float | None:
    gbs, up = node_facts.nvlink_gbs(part), _up(node_facts.values.get(("nvlink", part, "links"), ""))
    return slow_nvlinks(rate, want, up, gbs) if gbs and up and want else None


def _cards(node_facts: _NodeFacts, part: str, have: float, want: float) -> float | None:
    rates = node_facts.rates()
    return slow_ports(0, max(rates), int(want - have)) if rates else None


def _state(node_facts: _NodeFacts, part: str, value: str, usual: str) -> float | None:
    rates = node_facts.rates()
    return slow_ports(0, max(rates), 1) if rates and usual == "ACTIVE" and not value.startswith("ACTIVE") else None


def _rate(node_facts: _NodeFacts, part: str, now: float, want: float) -> float | None:
    return slow_ports(now, want, 1)


def _path(node_facts: _NodeFacts, part: str, now: float, want: float) -> float | None:
    rates = node_facts.rates()
    return narrow_link(now, want, max(rates) / 8 if rates else None)


_RULES: Mapping[tuple[str, str], tuple[Callable[[str], Any], Callable[[_NodeFacts, str, Any, Any], float | None]]] = {
    **{("pci", key): (read_number, _width) for key in ("width", "highest width", "slot's highest width")},
    **{("pci", key): (read_number, _generation) for key in ("generation", *_RATED)},
    ("nvlink", "links"): (_up, _nvlinks),
    ("nvlink", "line rate"): (read_number, _line_rate),
    ("nic", "compute network cards"): (read_number, _cards),
    ("nic", "state"): (str, _state),
    ("nic", "rate"): (read_number, _rate),
    ("pairing", BANDWIDTH): (read_number, _path),
}
"""By fact, how its values are read, and what a part loses that has one and should have the other."""
