"""Looks up AMD's accelerators and their machines (amd.toml): the wires that RCCL has, each figure with its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from functools import cache

from msgspec import convert

from topodiag.hardware.catalog import plain_name
from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data

_MAX_NAME = 128
PCIE_LANES = 16
XGMI_LANES = 16
"""Lanes of a link (ROCm documentation, MI100, MI250 and MI300 microarchitecture)."""


@dataclass(frozen=True, slots=True)
class AmdGpu:
    """`links` of a GPU, or of a die where a card shows two; `mesh`: one to each other GPU of the platform. `line_gbs`
    of a link and `rccl_gbs`, what RCCL reckons for it, both GB/s in one direction. `dies`: devices that a card shows;
    `pcie_gen` of its link of PCIE_LANES lanes to the host; `partitions`: devices that a card shows in each mode."""

    name: str
    match: str
    gcn: str
    links: int
    mesh: bool
    line_gbs: float
    rccl_gbs: float
    dies: int
    pcie_gen: int
    source: str
    partitions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AmdSystem:
    """`nics` (count, Gb/s each), None where the integrator decides."""

    name: str
    gpu: AmdGpu
    gpus: int
    names: tuple[str, ...]
    source: str
    nics: tuple[int, float] | None = None


@cache
def amd_gpus() -> tuple[AmdGpu, ...]:
    return tuple(AmdGpu(**row) for row in own_data("hardware/amd")["gpu"])


@cache
def amd_systems() -> tuple[AmdSystem, ...]:
    gpus = {gpu.name: gpu for gpu in amd_gpus()}
    return tuple(convert({**row, "gpu": gpus[row["gpu"]]}, AmdSystem) for row in own_data("hardware/amd")["system"])


def amd_gpu_by_name(text: str) -> AmdGpu | None:
    """The product of a name as tools print it, in any case."""
    name = text.strip()[:_MAX_NAME]
    if "mi" not in name.lower():
        return None  # no product of the catalogue: its patterns are not compiled for it
    return next((gpu for gpu in amd_gpus() if re.fullmatch(gpu.match, name, re.IGNORECASE)), None)


def amd_system_by_name(text: str) -> AmdSystem | None:
    """The machine of a name, whatever its signs and case."""
    name = plain_name(text)
    return next((spec for spec in amd_systems() if name in map(plain_name, (spec.name, *spec.names))), None)
