"""A peer that is not reached and ranks that are through before others, tests that refuse a node before its job, and
adapters that send nothing: the cause comes first, and the same words where all is well raise nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud, said

TORCH = """[rank3]: torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1970, unhandled system\
 error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5
[rank3]: ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
[rank3]: Last error:
[rank3]: {}
"""
SHUT_DOWN = """[1,{}]<stderr>:{}: Horovod has been shut down. This was caused by an exception on one of the ranks or\
 an attempt to allreduce, allgather or broadcast a tensor after one of the ranks finished execution.
"""
BOOTSTRAP = """w1:87:87 [0] NCCL INFO {0} set by environment to {1}
w1:87:87 [0] NCCL INFO Bootstrap : Using {2}<0>
w1:87:152 [0] NCCL INFO NET/Socket : Using [0]{3}eth0:10.4.19.77<0>
w1:87:152 [0] NCCL INFO Using network Socket
"""
STOPPED = "W1130 12:13:49.388 1243 torch/distributed/elastic/agent/server/api.py:723] Received {} death signal," + (
    " shutting down workers\n"
)
ROUTES = """u@n12:~$ ip route
default via 10.8.0.1 dev eno1 proto static metric 100
10.8.0.0/20 dev eno1 proto kernel scope link src 10.8.3.12 metric 100
{}
u@n12:~$ ss -tn
State   Recv-Q   Send-Q        Local Address:Port        Peer Address:Port
ESTAB   0        405756             10.8.3.12:37178          10.8.5.15:43603
"""
NHC = """Found XID errors: {}
Node Health Check failed.  Check check_xid_errors returned 1
"""
IBSTAT = """CA 'mlx5_0'
\tCA type: MT4123
\tNumber of ports: 1
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 200
\t\tLink layer: InfiniBand
"""
MATRIX = """{} P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1      2      3      4
     0 918.58  50.44  50.18  49.97 {bad}
     1  51.02 921.54  50.17  50.09 {bad}
     2  51.02  51.12 923.11  50.30 {bad}
     3  50.46  51.12  50.40 920.47 {bad}
     4 {bad} {bad} {bad} {bad} 900.10
"""
CLIQUES = """I0929 12:40:26 1 nvlib.go:2] identified fabric clique UUID/ID (device 0/GPU-6328b923): 6a130f54-f917/32766
I0929 12:40:26 1 nvlib.go:2] identified fabric clique UUID/ID (device 1/GPU-0a5e77c1): {}
"""
QUEUE = "NETDEV WATCHDOG: {} ({}): transmit queue 7 timed out\n"
SYMBOL = "[76463.6883] {}: {} of symbol ib_register_peer_memory_client{}\n"

FAULTS = {
    "no route": (TORCH.format("socketStartConnect: Connect to 10.2.19.14<52822> failed : No route to host"), "NET002"),
    "no answer": (
        TORCH.format("socketPollConnect: Connect to 10.2.19.14<52822> failed : Connection timed out"),
        "NET002",
    ),
    "old words": (TORCH.format("Net : Connect to 10.2.19.14<52822> failed : Network is unreachable"), "NET002"),
    "no family": (
        "h:31:31 [0] include/socket.h:311 NCCL WARN Socket creation failed : Address family not supported by protocol\n"
        "NCCL failure common.cu:874 'unhandled system error'\n",
        "NET002",
    ),
    "address vector": (
        TORCH.format("NET/OFI Unable to insert remote address into address vector for device 1. RC: 0"),
        "NET008",
    ),
    "root elsewhere": (BOOTSTRAP.format("NCCL_COMM_ID", "10.4.19.77:12340", "lo:127.0.0.1", ""), "NET002"),
    "not left out": (
        BOOTSTRAP.format("NCCL_SOCKET_IFNAME", "^docker0", "lo:127.0.0.1", "lo:127.0.0.1<0> [1]"),
        "NET002",
    ),
    "through": ("[1,0]<stdout>:925/925 - 522s - loss: 0.16\n" + SHUT_DOWN.format(2, "RuntimeError"), "JOB006"),
    "stopped": ("INFO Waiting for the batch to arrive\n" + STOPPED.format("15"), "JOB009"),
    "stopped by name": (STOPPED.format("Signals.SIGTERM"), "JOB009"),
    "evicted": ("    message: 1/8 workers are evicted\n    reason: MPIJobEvicted\n    type: Failed\n", "JOB009"),
    "files gone": (
        IBSTAT + "ibpanic: [132] main: stat of IB device 'mlx5_8' failed: No such file or directory\n",
        "NIC005",
    ),
    "one GPU of five": (MATRIX.format("Bidirectional", bad="  3.93"), "GPU006"),
    "watchdog": ("[ 812.1] " + QUEUE.format("ens3f0", "i40e"), "NIC003"),
    "watchdog of mlx5": ("[ 812.1] " + QUEUE.format("ens3f0np0", "mlx5_core"), "NIC003"),
    "unit hang": ("[ 81.1] ixgbe 0000:03:00.0 eth2: Detected Tx Unit Hang\n[ 81.2] TDH <0>\n", "NIC003"),
    "gone": ("[ 81.1] igb 0000:02:00.0 enp2s0: PCIe link lost\n[ 86.2] " + QUEUE.format("enp2s0", "igb"), "NIC001"),
    "version of a symbol": (SYMBOL.format("nv_peer_mem", "disagrees about version", ""), "GDR001"),
    "unknown symbol": (
        "[76463.6883] nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)\n",
        "GDR001",
    ),
    "steps that fail": (
        "DEBUG:  Evaluating single check line:  check_hw_ib 56\nERROR:  nhc:  Health check failed:  check_hw_ib:  No IB"
        " port mlx4_0:1 is ACTIVE (LinkUp 56 Gb/sec).\n",
        "NIC001",
    ),
    "two cliques": (CLIQUES.format("6a130f54-f917/1"), "NVL005"),
    "plug-in restarts": (
        "$ nvidia-smi --query-gpu=index,name --format=csv\nindex, name\n0, NVIDIA H200\n1, NVIDIA H200\n"
        "$ nvidia-smi -q | grep 'Fabric' -A 2\n    Fabric\n        State                                          :"
        " In Progress\n        Status                                         : N/A\n--\n    Fabric\n        State    "
        "                                      : Completed\n        Status                                         :"
        " Success\n$ kubectl get pods\nNAME                   READY   STATUS             RESTARTS   AGE\n"
        "nvidia-dra-driver-gpu-kubelet-plugin-q7m2x       1/2     CrashLoopBackOff   5          4m\n",
        "NVL005",
    ),
}
HARMLESS = {
    "tried again": "h:31:40 [0] NCCL INFO socketPollConnect: connect to 10.2.19.14<5282> returned Connection refused,"
    " retrying\nh:31:40 [0] NCCL INFO Using network IB\n",
    "an address family of torch": "[W socket.cpp:601] [c10d] The IPv6 network addresses of (n1, 29500) cannot be"
    " retrieved (gai error: -2 - Name or service not known).\n",
    "lo by name": BOOTSTRAP.format("NCCL_SOCKET_IFNAME", "lo", "lo:127.0.0.1", ""),
    "lo by the root": BOOTSTRAP.format("NCCL_COMM_ID", "127.0.0.1:12340", "lo:127.0.0.1", ""),
    "lo left out": BOOTSTRAP.format("NCCL_SOCKET_IFNAME", "^docker,lo", "eth0:10.4.19.77", ""),
    "one route": ROUTES.format("10.9.0.0/20 dev enp37s0f0 proto kernel scope link src 10.9.5.12 metric 100"),
    "an INFO of Horovod": "[1,0]<stdout>:horovod.join() waits until all ranks finished execution\n",
    "workers closed": "W1130 12:13:49 1243 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 12"
    " closing signal SIGTERM\n",
    "none evicted": "    message: 0/8 workers are evicted\n    type: Running\n",
    "all ports": "RDMA devices on c05:\n4/4 required IB ports are ACTIVE on c05\n",
    "a gate that asks": "only 1/4 nodes are free; waiting\nsrun: job 11 queued and waiting for resources\n",
    "all files": IBSTAT + "# ibstat mlx5_9\nibpanic: [13] main: 'mlx5_9' IB device can't be found: Invalid argument\n",
    "all alike": MATRIX.format("Bidirectional", bad=" 50.20"),
    "another socket": MATRIX.format("Bidirectional", bad=" 24.70"),
    "four lanes": MATRIX.format("Bidirectional", bad=" 12.70"),
    "a USB adapter": "[ 812.1] " + QUEUE.format("enx00e04c680001", "r8152"),
    "a driver that starts": "[ 3.1] igb 0000:02:00.0: added PHC on eth0\n[ 3.2] igb 0000:02:00.0 eth0: igb: eth0 NIC"
    " Link is Up 1000 Mbps Full Duplex\n",
    "steps of a check": "DEBUG:  Evaluating single check line:  check_hw_ib 56\n/etc/nhc/scripts/lbnl_hw.nhc: line 134:"
    " /sys/class/infiniband/mlx4_0/device/current_link_speed: No such file or directory\n",
    "one clique": CLIQUES.format("6a130f54-f917/32766"),
    "another module": "[ 76.68] my_mod: disagrees about version of symbol module_layout\n",
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_cause_comes_first(name: str, tmp_path: Path) -> None:
    text, check = FAULTS[name]
    assert [finding["id"] for finding in said(tmp_path, text)["findings"]][:1] == [check]


@pytest.mark.parametrize("name", HARMLESS)
def test_the_same_words_where_all_is_well_raise_nothing(name: str, tmp_path: Path) -> None:
    assert loud(tmp_path, HARMLESS[name]) == []


def test_an_exception_of_another_rank_says_more_than_horovods_end(tmp_path: Path) -> None:
    text = "[1,1]<stderr>:ValueError: batch 25 has no labels\n" + SHUT_DOWN.format(2, "RuntimeError")
    assert "JOB006" not in [finding["id"] for finding in said(tmp_path, text)["findings"]]


def test_a_launcher_that_was_stopped_says_less_than_an_end_with_a_reason(tmp_path: Path) -> None:
    text = (
        STOPPED.format("15")
        + "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n"
    )
    (only,) = [finding for finding in said(tmp_path, text)["findings"] if finding["id"] == "JOB009"]
    assert "time limit" in only["message"]


def test_a_module_that_is_loaded_in_the_end_is_not_missed_for_a_message_at_boot(tmp_path: Path) -> None:
    text = SYMBOL.format("nvidia_peermem", "disagrees about version", "") + (
        "$ lsmod | grep peer\nnvidia_peermem         16384  0\nib_core  417792  3 nvidia_peermem,ib_uverbs,mlx5_ib\n"
    )
    assert "GDR001" not in loud(tmp_path, text)
