"""One step of a derivation, as every model gives it: a name, a number with its unit, and where it comes from."""

from __future__ import annotations

from topodiag.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """`unit` is a word of the published result (`us`, `GB/s`, `bytes`, `messages`, `ranks`, ...), "" for a ratio."""

    name: str
    value: float
    unit: str
    formula: str
