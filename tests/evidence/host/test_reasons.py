"""Reasons for which a node is out of service: which part they name, and which tell of no fault."""

from __future__ import annotations

import pytest

from topodiag.evidence.host.slurm_nodes import kind_of


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("gres/gpu count reported lower than configured (7 < 8)", "gpu.count_low"),
        ("GPU 3 fell off the bus", "gpu.lost"),
        ("Xid 79 on GPU 2", "gpu.lost"),
        ("Xid 94 on GPU 2", "gpu.memory"),
        ("/lustre not mounted", "storage.trouble"),
        ("NHC: check_hw_ib:  N", "nic.port_down"),
        ("IB link is bad", "host.out_of_service"),
        ("Kill task failed", "host.out_of_service"),
        ("Not responding", "host.out_of_service"),
    ],
)
def test_a_reason_names_a_part(reason: str, kind: str) -> None:
    assert kind_of(reason) == kind


@pytest.mark.parametrize(
    "reason", ["", "none", "maintenance", "reserved for testing", "firmware upgrade of NVSwitch", "GPU driver update"]
)
def test_a_node_kept_free_on_purpose_is_no_fault(reason: str) -> None:
    assert kind_of(reason) == ""
