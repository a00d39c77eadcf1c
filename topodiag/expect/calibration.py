"""How much of NCCL's model healthy machines reach: residual factors by GPU generation, transport and collective.

The factors are data (calibration.toml beside this module) with their spread and the systems they were fitted on
(benchmarks/calibrating.py, tools/fit_calibration.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache

from msgspec import convert

from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data

GENERATIONS = ((100, "blackwell"), (90, "hopper"), (80, "ampere"), (70, "volta"), (0, "pascal"))
Cell = tuple[str, str, str]
"""Generation, transport and collective, "" where it is of any."""


def generation_of(sm: int) -> str:
    return next(name for least, name in GENERATIONS if sm >= least)


@dataclass(frozen=True, slots=True)
class Factor:
    """`generation` and `collective` are "" for the wider cells. `low` and `high` are the least and the greatest ratio
    of a row in the cell, `systems` whose rows they are."""

    transport: str
    factor: float
    generation: str = ""
    collective: str = ""
    low: float = 1.0
    high: float = 1.0
    rows: int = 0
    systems: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far below its expectation a healthy run of a transport may fall, as a share."""

    transport: str
    below: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Calibration:
    factors: Mapping[Cell, Factor] = field(default_factory=dict)
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)

    def of(self, generation: str, transport: str, collective: str) -> Factor:
        """The narrowest factor that there is; 1 without any."""
        narrower = reversed(cells(generation, transport, collective))
        return next((self.factors[cell] for cell in narrower if cell in self.factors), Factor(transport, 1.0))

    def tolerance(self, transport: str) -> Tolerance:
        known = self.tolerances.get(transport) or self.tolerances.get(_wire(transport))
        return known or self.tolerances.get("", Tolerance("", 0.25))


APART = ("p2p", "flow", "wires", "pcie")
"""Kinds of transport that say nothing of how much of NCCL's figure a network carries: alltoall, single flows, what is
measured against the line rate instead, and NICs whose slots are slower than their ports."""


def _wire(transport: str) -> str:
    """What a transport is a kind of: `cloud` of `cloud-ring`; itself inside a node and for kinds that stand apart."""
    wire, _, kind = transport.partition("-")
    return transport if kind in APART else wire


def cells(generation: str, transport: str, collective: str) -> tuple[Cell, Cell, Cell, Cell]:
    """The cells that an observation is in, the widest first."""
    return (
        ("", _wire(transport), ""),
        ("", transport, ""),
        (generation, transport, ""),
        (generation, transport, collective),
    )


@cache
def calibration() -> Calibration:
    """The factors that ship with the package."""
    table = own_data("expect/calibration")
    factors = convert(table["factor"], tuple[Factor, ...])
    tolerances = convert(table["tolerance"], tuple[Tolerance, ...])
    return Calibration(
        {(factor.generation, factor.transport, factor.collective): factor for factor in factors},
        {tolerance.transport: tolerance for tolerance in tolerances},
    )
