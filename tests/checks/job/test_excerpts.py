"""A line that is the verdict counts alone: without Init, Using or Connected lines around it."""

from __future__ import annotations

import pytest

from tests.checks.job.excerpts import HEAD, WARN, found, one, result_of
from topodiag.model.finding import Confidence, Severity


@pytest.mark.parametrize(
    "words",
    [
        "GPU Direct RDMA Disabled for HCA/GPU 0/1 (distance 7 > 4)",
        "GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 7 > 4)",
        "NET/IB : GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 7 >= 4)",
        "GPU Direct RDMA Disabled for GPU/0-1b000 (rank 0) - NET/0-3 (distance 7 > 4)",
    ],
)
def test_gpudirect_off_for_distance_counts_alone(words: str) -> None:
    finding = one("GDR002", HEAD + words)
    assert finding.severity is Severity.WARNING
    assert "distance 7 where NCCL goes up to 4" in finding.observed
    assert [origin.text for origin in finding.evidence] == [words]


def test_a_gpu_with_a_nearer_nic_is_not_too_far() -> None:
    lines = [
        "GPU Direct RDMA Disabled for GPU 1b000 / HCA 4 (distance 7 > 4)",
        "GPU Direct RDMA Enabled for GPU 1b000 / HCA 0 (distance 3 <= 4), read 1",
    ]
    assert not found("GDR002", *(HEAD + line for line in lines))


def test_only_the_gpu_without_any_near_nic_is_counted() -> None:
    lines = [
        "GPU Direct RDMA Enabled for GPU 1b000 / HCA 0 (distance 3 <= 4), read 1",
        "GPU Direct RDMA Disabled for GPU 1b000 / HCA 1 (distance 7 > 4)",
        "GPU Direct RDMA Disabled for GPU 43000 / HCA 0 (distance 7 > 4)",
        "GPU Direct RDMA Disabled for GPU 43000 / HCA 1 (distance 7 > 4)",
    ]
    assert "for 1 GPU:" in one("GDR002", *(HEAD + line for line in lines)).message


def test_a_distance_that_a_setting_made_is_the_settings() -> None:
    lines = [
        "NCCL_NET_GDR_LEVEL set by environment to LOC",
        "GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 3 > 0)",
    ]
    assert not found("GDR002", *(HEAD + line for line in lines))


@pytest.mark.parametrize("words", ["(no module)", ""])
def test_gpudirect_off_for_a_device_counts_alone_and_its_line_is_the_evidence(words: str) -> None:
    line = f"NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' {words}".rstrip()
    finding = one("GDR001", HEAD + line)
    assert "mlx5_0" in finding.observed
    assert [origin.text for origin in finding.evidence] == [line]


def test_the_disabled_line_is_the_evidence_and_not_the_list_of_devices() -> None:
    line = "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"
    finding = one("GDR001", HEAD + "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", HEAD + line)
    assert [origin.text for origin in finding.evidence] == [line]


@pytest.mark.parametrize(
    "line",
    [
        WARN + "Cuda failure 802 'system not yet initialized'",
        WARN + "Cuda failure 'system not yet initialized'",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
    ],
)
def test_error_802_names_the_fabric(line: str) -> None:
    finding = one("NVL005", line)
    assert finding.severity is Severity.ERROR
    assert any("nvidia-fabricmanager" in step for step in finding.fix)


def test_a_failed_bind_of_multicast_memory_names_the_fabric() -> None:
    words = "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'not permitted'."
    finding = one("NVL005", WARN + words)
    assert "NVLink SHARP cannot be set up" in finding.message
    assert not any("out of memory" in step for step in finding.fix)


@pytest.mark.parametrize(
    "words",
    ["Error : too many XML nodes (max 1024)", "Error : too many XML subnodes (max 128)",
     "Attribute class of node nic not found"],
)  # fmt: skip
def test_a_topology_that_nccl_cannot_hold_or_read_counts_alone(words: str) -> None:
    assert one("TOP001", WARN + words).severity is Severity.ERROR


def test_the_same_words_at_level_info_are_no_fault() -> None:
    assert not result_of(HEAD + "Attribute class of node nic not found\n").findings


def test_mnnvl_that_does_not_work_counts_alone() -> None:
    words = "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration."
    assert one("NVL005", WARN + words).confidence is Confidence.HIGH
