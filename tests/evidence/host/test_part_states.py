"""What a line of any tool says by itself: parts and their states, denials, zeros, and what is only spoken of."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.host.part_states import said_of

HEALTHY = Path(__file__).parents[3] / "fixtures"


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("[health] 2024-05-06 GPU 3 has fallen off the bus", "GPU"),
        ("node-agent: nvlink 5 on gpu 2 is down", "NVLink"),
        ("fabricmanager is not running on tray 4", "NVSwitch or fabric manager"),
        ("WARN port Ethernet1/17 is down, last change 3 s ago", "network port"),
        ("storage: mount /scratch timed out after 30s", "storage"),
        ("probe: host gpu-12 is unreachable", "node"),
        ("worker 17 was killed by signal 9", "process"),
        ("agent: DIMM_A4 uncorrectable memory event", "memory"),
        ("pcie slot 4 link width below expected", "PCIe device"),
        ("driver version mismatch between gpu-1 and gpu-2", "version"),
        ("dial tcp 10.0.0.3:8000: connection refused", "connection"),
        ("InfiniBand port 1: down", "network port"),
    ],
)
def test_a_line_says_that_a_part_is_at_fault(line: str, part: str) -> None:
    said = said_of(line)
    assert said is not None
    assert said.part == part


@pytest.mark.parametrize(
    "line",
    [
        "GPU 3: 0 errors", "no errors on mlx5_3", "uncorrectable errors: 0 on GPU 2", "nvlink 3 is not down",
        "GPU 4 recovered after it was lost", "PCIe link degraded: no", "health check of port 1: PASS, was down before",
        "GPU 0 OK, failed: 0", "if the port is down, look at its cable", "the port may be down after a reboot",
        "port_down_timeout = 30", "missing: [] GPUs", "0 of 8 GPUs: 0 failed", "# the GPU is lost", "is the port down?",
        "restarting: storage is back online", "no route to host: none", "NIC timeouts 0",
        "GPU memory is full of weights",
        "the firmware of GPU 3 was read", "worker 3 finished, 12 tasks", "",
    ],
)  # fmt: skip
def test_a_denial_a_zero_and_what_may_come_say_nothing(line: str) -> None:
    assert said_of(line) is None


def test_no_line_of_the_healthy_machines_says_anything() -> None:
    files = [
        path
        for folder in ("jobs/healthy", "tables/all-reduce-healthy", "nodes/dgx-h100-healthy")
        for path in (HEALTHY / folder).rglob("*")
        if path.is_file() and path.suffix not in (".json", ".tree")
    ]
    lines = {line for path in files for line in path.read_text(errors="replace").split("\n")}
    assert len(lines) > 1000
    assert [line for line in lines if said_of(line) is not None] == []


@given(st.text(max_size=300) | st.text(alphabet="GPU port is down lost failed 0:.-", max_size=300))
def test_any_line_is_looked_at(line: str) -> None:
    said_of(line)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("NIC mlx5_3 on node gx-1 not found", "port-count"),
        ("mlx5_0 on the node is missing", "port-count"),
        ("Device mlx5_0 port 1: issm character device missing from /sys/class/infiniband_mad", ""),
        ("mlx5_2: counter link_downed_counter not found", ""),
        ("mlx5_bond_0: lag map file missing", ""),
        ("missing node description for mlx5_1", ""),
        ("GPU 3 not found", "gpu-lost"),
        ("mlx5_0: lost 3 packets", ""),
        ("mlx5_0 was lost after the reset", "port-count"),
        ("MIG device not found on GPU 1", ""),
        ("GPU 3: serial number not found in the inventory", ""),
    ],
)
def test_what_is_missing_is_the_part_and_not_a_thing_of_it(line: str, fault: str) -> None:
    made = said_of(line)
    assert (made.fault if made is not None else "") == fault
