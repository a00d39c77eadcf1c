"""The health mask of a GPU's NVLink fabric (nvmlGpuFabricInfo_v2_t.healthMask), as NVML and NCCL's log give it."""

from __future__ import annotations

from topodiag.words.own_data import own_data

FABRIC_MISCONFIGURATIONS: dict[str, str] = own_data("model/fabric_health")["misconfigurations"]
"""Bits 8 to 11 of the health mask; 0 is not supported, 1 none."""

_PROBLEM_SHIFTS = {2: "route recovery in progress", 4: "route unhealthy", 6: "access timeout recovery"}


def fabric_bandwidth(mask: int) -> str | None:
    """`degraded` or `full` by bits 0 and 1 of the fabric health mask; None when it does not say."""
    return {1: "degraded", 2: "full"}.get(mask & 3)


def fabric_problems(mask: int) -> str | None:
    """The health mask's other fields that are set, joined with commas; None for a mask without any data."""
    if mask & 0xFFC == 0:
        return None
    texts = [name for shift, name in _PROBLEM_SHIFTS.items() if mask >> shift & 3 == 1]
    configuration = mask >> 8 & 15
    if configuration > 1:
        texts.append(FABRIC_MISCONFIGURATIONS.get(str(configuration), f"incorrect configuration {configuration}"))
    return ", ".join(texts)
