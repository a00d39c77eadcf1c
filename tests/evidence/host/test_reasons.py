"""Reasons for which a node is out of service: which part they name, and which tell of no fault."""

from __future__ import annotations

import pytest

from topodiag.evidence.host.reasons import kind_of


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("gres/gpu count reported lower than configured (7 < 8)", "reported gpu-count"),
        ("GPU 3 fell off the bus", "reported gpu-lost"),
        ("Xid 79 on GPU 2", "reported gpu-lost"),
        ("Xid 94 on GPU 2", "reported gpu-memory"),
        ("Xid 31", "reported xid"),
        ("mlx5_3 is down", "reported port-down"),
        ("IB link flapping", "reported port-flap"),
        ("/lustre not mounted", "reported storage"),
        ("PCIe width x4 instead of x16 on GPU1", "reported pcie"),
        ("nvidia-fabricmanager failed", "reported fabric"),
        ("Kill task failed", "out-of-service"),
        ("Not responding", "out-of-service"),
    ],
)
def test_a_reason_names_a_part(reason: str, kind: str) -> None:
    assert kind_of(reason) == kind


@pytest.mark.parametrize(
    "reason", ["", "none", "maintenance", "reserved for testing", "firmware upgrade of NVSwitch", "GPU driver update"]
)
def test_a_node_kept_free_on_purpose_is_no_fault(reason: str) -> None:
    assert kind_of(reason) == ""
