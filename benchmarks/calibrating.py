"""Fits the residual factors of expect/calibration.toml to healthy measurements, all or those without a system.

Each system counts once per cell; a cell is drawn towards the wider one around it (the generation's transport, then the
transport of any generation, then the wire of any network) as if that were one more system, so that a single published
number does not become a law.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, fsum, log

from topodiag.expect.calibration import Calibration, Cell, Factor, Tolerance, cells

_LEAST, _MOST = 0.2, 1.3
"""A factor outside is no residual: the model is of another machine."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One healthy measurement over the raw model."""

    generation: str
    transport: str
    collective: str
    system: str
    ratio: float
    source: str = ""


def fit(observations: Iterable[Observation], tolerances: Mapping[str, Tolerance] | None = None) -> Calibration:
    """Factors of every cell that has an observation."""
    rows = [observation for observation in observations if _LEAST <= observation.ratio <= _MOST]
    factors: dict[Cell, Factor] = {}
    for level in range(4):
        own = [cells(row.generation, row.transport, row.collective)[level] for row in rows]
        for key in dict.fromkeys(own):
            mine = [row for row, cell in zip(rows, own, strict=True) if cell == key]
            factors[key] = _factor(key, mine, _around(factors, key))
    return Calibration(factors, tolerances or {})


def _around(factors: Mapping[Cell, Factor], key: Cell) -> float:
    return next((factors[cell].factor for cell in reversed(cells(*key)) if cell != key and cell in factors), 1.0)


def _factor(key: Cell, rows: list[Observation], prior: float) -> Factor:
    systems = tuple(dict.fromkeys(row.system for row in rows))
    votes = []
    for system in systems:
        logs = [log(row.ratio) for row in rows if row.system == system]
        votes.append(fsum(logs) / len(logs))
    value = exp((fsum(votes) + log(prior)) / (len(votes) + 1))
    ratios = [row.ratio for row in rows]
    sources = tuple(dict.fromkeys(row.source for row in rows if row.source))
    return Factor(key[1], value, key[0], key[2], min(ratios), max(ratios), len(rows), systems, sources)
