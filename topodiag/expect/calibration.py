"""How much of NCCL's model healthy machines reach: residual factors by GPU generation, transport and collective.

The factors are data (calibration.toml beside this module) with their spread and the systems they were fitted on; the
fit itself is here so that it can be repeated without one of the systems. Each system counts once per cell; a cell is
drawn towards the wider one around it (the generation's transport, then the transport of any generation, then the wire
of any network) as if that were one more system, so that a single published number does not become a law.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cache
from math import exp, fsum, log

from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data

GENERATIONS = ((100, "blackwell"), (90, "hopper"), (80, "ampere"), (70, "volta"), (0, "pascal"))
_Cell = tuple[str, str, str]
"""Generation, transport and collective, "" where it is of any."""
_LEAST, _MOST = 0.2, 1.3
"""A factor outside is no residual: the model is of another machine."""


def generation_of(sm: int) -> str:
    return next(name for least, name in GENERATIONS if sm >= least)


@dataclass(frozen=True, slots=True)
class Observation:
    """One healthy measurement over the raw model."""

    generation: str
    transport: str
    collective: str
    system: str
    ratio: float
    source: str = ""


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
    factors: Mapping[_Cell, Factor] = field(default_factory=dict)
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)

    def of(self, generation: str, transport: str, collective: str) -> Factor:
        """The narrowest factor that there is; 1 without any."""
        narrower = reversed(_cells(generation, transport, collective))
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


def fit(observations: Iterable[Observation], tolerances: Mapping[str, Tolerance] | None = None) -> Calibration:
    """Factors of every cell that has an observation."""
    rows = [observation for observation in observations if _LEAST <= observation.ratio <= _MOST]
    factors: dict[_Cell, Factor] = {}
    for level in range(4):
        cells = [_cells(row.generation, row.transport, row.collective)[level] for row in rows]
        for key in dict.fromkeys(cells):
            mine = [row for row, cell in zip(rows, cells, strict=True) if cell == key]
            factors[key] = _factor(key, mine, _around(factors, key))
    return Calibration(factors, tolerances or {})


def _cells(generation: str, transport: str, collective: str) -> tuple[_Cell, _Cell, _Cell, _Cell]:
    """The cells that an observation is in, the widest first."""
    return (
        ("", _wire(transport), ""),
        ("", transport, ""),
        (generation, transport, ""),
        (generation, transport, collective),
    )


def _around(factors: Mapping[_Cell, Factor], key: _Cell) -> float:
    return next((factors[cell].factor for cell in reversed(_cells(*key)) if cell != key and cell in factors), 1.0)


def _factor(key: _Cell, rows: list[Observation], prior: float) -> Factor:
    systems = tuple(dict.fromkeys(row.system for row in rows))
    votes = []
    for system in systems:
        logs = [log(row.ratio) for row in rows if row.system == system]
        votes.append(fsum(logs) / len(logs))
    value = exp((fsum(votes) + log(prior)) / (len(votes) + 1))
    ratios = [row.ratio for row in rows]
    sources = tuple(dict.fromkeys(row.source for row in rows if row.source))
    return Factor(key[1], value, key[0], key[2], min(ratios), max(ratios), len(rows), systems, sources)


@cache
def calibration() -> Calibration:
    """The factors that ship with the package."""
    table = own_data("expect/calibration")
    lists = ("systems", "sources")
    factors = [
        Factor(**{**row, **{name: tuple(row.get(name, ())) for name in lists}}) for row in table.get("factor", [])
    ]
    tolerances = [Tolerance(**row) for row in table.get("tolerance", [])]
    return Calibration(
        {(factor.generation, factor.transport, factor.collective): factor for factor in factors},
        {tolerance.transport: tolerance for tolerance in tolerances},
    )
