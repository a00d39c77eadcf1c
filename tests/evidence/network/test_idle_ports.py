"""MPI's word that no port of an RDMA device is active."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud

OPEN_MPI = """WARNING: There is at least non-excluded one OpenFabrics device found,
but there are no active ports detected (or Open MPI was unable to use
them).  This is most certainly not what you wanted.  Check your
cables, subnet manager configuration, etc.  The openib BTL will be
ignored for this job.

  Local host: n7
"""


@pytest.mark.parametrize(
    "text",
    [
        OPEN_MPI,
        "WARNING: There is at least one OpenIB HCA found on host 'n7', but there is no active ports detected.\n",
        "[n7:mpi_rank_0][rdma_open_hca] No active HCAs found on the system!!!\n",
        "sminfo: mlx5_0: no active ports\n",
        "[1721640396.3341] [n7:27301:0] ib_device.c:7 UCX  WARN  no active ports found on mlx5_0\n",
    ],
)
def test_no_active_port_is_told_in_doubt(tmp_path: Path, text: str) -> None:
    finding = first_of(tmp_path, text)
    assert (finding["id"], finding["severity"]) == ("NIC001", "warning")
    assert "nobody uses" in finding["message"]


@pytest.mark.parametrize(
    "text",
    [
        OPEN_MPI + "        state:                  PORT_ACTIVE (4)\n",
        OPEN_MPI + "n7:31:31 [0] NCCL INFO NET/IB : Using [0]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.7<0>\n",
        "interface Vlan30: the VLAN has no active ports\n",
        "[1721640396.3341] [n7:27301:0] ib_device.c:7 UCX  DEBUG no active ports on mlx5_0\n",
        "The openib BTL is skipped for an HCA if there are no active ports.\n",
        "How can an HCA have no active ports?\n",
        "// don't use IB if there are no active HCAs or ports\n",
        "RDMA: No active ports for this project\n",
    ],
)
def test_where_a_port_is_active_or_nobody_found_none(tmp_path: Path, text: str) -> None:
    assert "NIC001" not in loud(tmp_path, text)
