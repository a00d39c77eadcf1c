"""A device without a user-space driver is told where nothing uses RDMA, and not beside a job that does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud

MISSING = "libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0\n"
OTHERS = "libibverbs: Warning: couldn't load driver 'libipathverbs-rdmav25.so': libipathverbs-rdmav25.so: cannot open\n"
OPENIB = (
    "[[40111,1],0]: A high-performance Open MPI point-to-point messaging module\n"
    "was unable to find any relevant network interfaces:\n\nModule: OpenFabrics (openib)\n  Host: c1\n\n"
    "Another transport will be used instead, although this may result in\nlower performance.\n"
)
USED = "n1:10:10 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"


@pytest.mark.parametrize("text", [MISSING + OPENIB, MISSING + "No IB devices found\n"])
def test_a_device_that_nothing_here_can_drive_is_told(tmp_path: Path, text: str) -> None:
    assert "HST002" in loud(tmp_path, text)


@pytest.mark.parametrize("text", [MISSING, OPENIB, OTHERS + OPENIB, MISSING + USED + OPENIB, OTHERS])
def test_a_card_that_nobody_means_to_use_is_not(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []
