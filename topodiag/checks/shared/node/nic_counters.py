"""What each error counter of a NIC means and how much of it is a fault. The table is nic_counters.toml."""

from __future__ import annotations

import re

from topodiag.checks.interface import Advice, advice_of
from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data


@dataclass(frozen=True, slots=True)
class Limit:
    """What growth of a counter between two samples means. `per_flap` is how much one link flap adds (0: no flap)."""

    meaning: str
    advice: Advice
    per_flap: int
    ethernet_only: bool


PRIORITY_DISCARDS = "rx_prio*_discards"
"""Stands for `rx_prio0_discards` to `rx_prio7_discards` of mlx5."""


def _limits() -> dict[str, Limit]:
    held = own_data("checks/shared/node/nic_counters")
    counters = ((name, counter, held["kind"][counter["kind"]]) for name, counter in held["counter"].items())
    return {
        name: Limit(own["meaning"], advice_of(kind), own.get("per_flap", 0), kind.get("ethernet_only", False))
        for name, own, kind in counters
    }


LIMITS = _limits()


def limit_name(name: str) -> str:
    """The name of a counter in LIMITS."""
    return PRIORITY_DISCARDS if re.fullmatch(r"rx_prio[0-7]_discards", name) else name
