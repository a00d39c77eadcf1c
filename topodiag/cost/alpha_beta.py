"""The alpha-beta model of a link: a message of n bytes takes alpha + n / beta.

Times in microseconds, sizes in bytes, bandwidths in GB/s (1e9 bytes per second, so 1 GB/s moves 1000 bytes in 1 us).
A size is a number or a numpy array of any shape; the result has its shape, and numbers need no numpy. Source: R.
Hockney, The communication challenge for MPP, Parallel Computing 20 (1994).
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Literal, TypeVar

from topodiag.lazy import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

S = TypeVar("S", float, "npt.NDArray[np.float64]")
"""One size in bytes, or many."""

BYTES_PER_US = 1000.0
"""Bytes that 1 GB/s moves in a microsecond."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link or a tier of equal links, in one direction: `alpha_us` per message, `gbs` sustained. Raises ValueError
    for a latency below 0 or a bandwidth that is not above 0."""

    alpha_us: float
    gbs: float
    name: str = ""

    def __post_init__(self) -> None:
        if not (0 <= self.alpha_us < float("inf") and self.gbs > 0 and isfinite(self.gbs)):
            raise ValueError(f"a link has a latency of at least 0 us and a bandwidth above 0 GB/s: {self}")

    def time_us(self, size: S) -> S:
        """alpha + n / beta."""
        return self.alpha_us + size / (self.gbs * BYTES_PER_US)

    @property
    def crossover(self) -> float:
        """The size in bytes, alpha x beta, at which latency and transfer take as long: above it the link is bound by
        bandwidth, below it by latency. At it half of the bandwidth is reached (Hockney's n_1/2)."""
        return self.alpha_us * self.gbs * BYTES_PER_US

    def bound(self, size: float) -> Literal["latency", "bandwidth"]:
        """`latency` or `bandwidth`: which term of a message of this size is the greater."""
        return "bandwidth" if size > self.crossover else "latency"


@dataclass(frozen=True, slots=True)
class Term:
    """One step of a derivation, as every model gives it: a number, and where it comes from. `unit` is a word of the
    published result (`us`, `GB/s`, `bytes`, `messages`, `ranks`, ...), "" for a ratio."""

    name: str
    value: float
    unit: str
    formula: str
