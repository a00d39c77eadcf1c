"""The bits of the fabric's health mask by their meaning."""

from __future__ import annotations

import pytest

from topodiag.model.fabric_health import fabric_bandwidth, fabric_problems


@pytest.mark.parametrize(
    ("mask", "bandwidth", "problems"),
    [
        (0x1AA, "full", ""),
        (0x1A9, "degraded", ""),
        (0, None, None),
        (0x19A, "full", "route unhealthy"),
        (0x5AA, "full", "insufficient NVLinks"),
        (0x1A6, "full", "route recovery in progress"),
        (0x16A, "full", "access timeout recovery"),
    ],
)
def test_the_health_mask_is_decoded(mask: int, bandwidth: str | None, problems: str | None) -> None:
    assert (fabric_bandwidth(mask), fabric_problems(mask)) == (bandwidth, problems)
