"""Looks up what a GPU computes at most (compute.toml), dense and without sparsity, each figure with its source."""

from __future__ import annotations

from topodiag.hardware.specs import GpuSpec
from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data


@dataclass(frozen=True, slots=True)
class Peak:
    """`tflops` in 1e12 operations per second, a multiplication and an addition counted as two."""

    tflops: float
    source: str


def peak(gpu: GpuSpec, precision: str) -> Peak | None:
    """The peak of a product in a precision; None where the data has none."""
    for row in own_data("hardware/compute")["gpu"]:
        names, rate = row["names"], row.get(precision)
        if isinstance(names, list) and (gpu.name in names or gpu.family in names):
            return Peak(float(rate), str(row["source"])) if isinstance(rate, (int, float)) else None
    return None
