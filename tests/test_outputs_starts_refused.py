"""Starts that a firewall, a device node that is not there, or an old driver refuses: the cause comes first, and the
same words of a program that is well accuse nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud

ORTE = """------------------------------------------------------------
A process or daemon was unable to complete a TCP connection
to another process:
  Local host:    c-17
  Remote host:   c-18
This is usually caused by a firewall on the remote host. Please
check that any firewall (e.g., iptables) has been disabled and
try again.
------------------------------------------------------------
"""
NO_DAEMON = """--------------------------------------------------------------------------
PRTE was unable to reliably start one or more daemons.
This usually is caused by:
"""
HYDRA = (
    '[proxy:0:1@c-18] HYDU_sock_connect (utils/sock/sock.c:145): unable to connect from "c-18" to "c-17" ({})\n'
    "[proxy:0:1@c-18] main (pm/pmiserv/pmip.c:189): unable to connect to server c-17 at port 41235\n"
)
UCX = "[1748311895.118233] [dyn:1712 :0]     ucp_context.c:1321 UCX  WARN  network device{} not available, please use one or more of: {}\n"  # noqa: E501
NO_NODE = "[1612871744.804230] [c4:17357:0]       ib_md.c:1700 UCX  {} ibv_open_device({}) failed: {}\n"
NO_MANAGER = "[1612871744.812913] [c4:17357:0]   rdmacm_cm.c:686  UCX  {} rdma_create_event_channel failed: {}\n"
OLD = "CUDA driver version is insufficient for CUDA runtime version"
NCCL = f"g-3:201:201 [0] misc/cudawrap.cc:182 NCCL WARN Cuda failure '{OLD}'\n"
CODE = "g-3:201:201 [0] NCCL INFO init.cc:1703 -> 1\n"
FAULTS = {
    "Open MPI": (ORTE, "NET002"),
    "PRRTE, and then no daemon": (ORTE + NO_DAEMON, "NET002"),
    "Hydra": (HYDRA.format("No route to host"), "NET002"),
    "UCX falls to TCP": (UCX.format(" 'mlx5_bond_0:1' is", "'bond0'(tcp), 'eth0'(tcp), 'lo'(tcp)"), "NET001"),
    "several devices": (UCX.format("s 'mlx5_0:1','mlx5_1:1' are", "'eth0'(tcp), 'lo'(tcp)"), "NET001"),
    "no device node": (NO_NODE.format("ERROR", "mlx5_bond_0", "No such file or directory"), "HST002"),
    "the same, denied": (NO_NODE.format("ERROR", "bnxt_re0", "Permission denied"), "HST002"),
    "perftest": (" Couldn't get context for mlx5_0\n Unable to create test contex.\n", "HST002"),
    "no node of the manager": (NO_MANAGER.format("ERROR", "No such file or directory"), "HST002"),
    "both": (NO_NODE.format("ERROR", "mlx5_2", "No such file or directory")
             + NO_MANAGER.format("ERROR", "No such file or directory"), "HST002"),
    "NCCL on an old driver": (NCCL + CODE, "HST004"),
    "torch on an old driver": (f"Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n"
                               f"RuntimeError: CUDA error: {OLD}\n", "HST004"),
    "a sample on an old driver": (f"cudaGetDeviceCount returned 35\n-> {OLD}\nResult = FAIL\n", "HST004"),
    "torch's own words": ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please"
                          " update your GPU driver\n", "HST004"),
    "the container's runtime": ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please"
                                " update your driver to a newer version\n", "HST004"),
}  # fmt: skip
WELL = {
    "a launcher that is well": "[proxy:0:1@c-18] got pmi command (from 4): barrier_in\nhello, I am rank 1 of 2\n",
    "Hydra's peer is not up yet": HYDRA.format("Connection refused").splitlines()[0] + "\n",
    "a port of another name": UCX.format(" 'mlx5_3:1' is", "'eth0'(tcp), 'mlx5_0:1'(ib), 'lo'(tcp)"),
    "an interface of sockets": UCX.format(" 'enp1s0f0np0' is", "'enp1s0f1np1'(tcp), 'lo'(tcp)"),
    "a device that is left out": UCX.format(" 'mlx5_bond_0:1' is", "'mlx5_bond_1:1'(gga), 'eth0'(tcp)"),
    "a program that goes on without": f"GPU support: {OLD}, running on the CPU\n",
    "a debug line of UCX": NO_NODE.format("DEBUG", "mlx5_0", "No such file or directory"),
    "a node without adapters": NO_MANAGER.format("DIAG", "No such device"),
    "a list of CUDA's errors": "    cudaErrorInsufficientDriver = 35,\n    cudaErrorNoDevice = 100,\n",
    "advice": f"If `{OLD}` is printed, update the driver.\n",
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_cause_of_a_start_that_fails_comes_first(tmp_path: Path, name: str) -> None:
    text, check = FAULTS[name]
    first = first_of(tmp_path, text)
    assert first["id"] == check
    assert first["severity"] != "info"


@pytest.mark.parametrize("name", WELL)
def test_a_start_that_is_well_accuses_nobody(tmp_path: Path, name: str) -> None:
    assert loud(tmp_path, WELL[name]) == []
