"""What jobs print whose setup does not let them meet: names, addresses, GIDs, versions, starts that do not fit.
The cause comes first; the same words where nothing is wrong accuse nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud, said

LOOPED = (
    "[rank{0}]:[W808 15:03:19.118204511 ProcessGroupGloo.cpp:524] Warning: Unable to resolve hostname to a (local)"
    " address. Using the loopback address as fallback. Manually set the network interface to bind to with"
    " GLOO_SOCKET_IFNAME. (function operator())\n"
)
MESH = (
    "[rank{0}]:[E808 15:03:20.402915037 ProcessGroupGloo.cpp:145] Gloo connectFullMesh failed with"
    " [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] {1}\n"
)
REFUSED = "timed out connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:14215"
NUMBERED = "[E socket.cpp:753] [c10d] The client socket has failed to connect to any network address of ({}, 47389).\n"
OFI = """p5:954:954 [6] NCCL INFO Bootstrap : Using eth0:10.6.1.2<0>
p5:954:954 [6] NCCL INFO cudaDriverVersion 12020
NCCL version {}+cuda12.4
p5:954:3133 [6] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.7.3-aws
p5:954:3133 [6] NCCL INFO NET/OFI Using Libfabric version {}
p5:954:3133 [6] NCCL INFO Using network AWS Libfabric
p5:954:3190 [6] register_mr_buffers:544 NCCL WARN NET/OFI Unable to register memory (type = {}) for device 0. RC: -22, Error: Invalid argument
p5:954:3190 [6] NCCL INFO transport/net.cc:751 -> 2
"""  # noqa: E501
RAY = """(W pid=9, ip=10.6.3.2) p5:954:954 [6] NCCL INFO Bootstrap : Using eth0:10.6.3.2<0>
(W pid=9, ip=10.6.3.2) p5:954:3133 [6] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.9.2-aws
(W pid=9, ip=10.6.3.2) p5:954:3133 [6] p:1067 NCCL WARN NET/OFI aws-ofi-nccl initialization failed [repeated 15x across cluster]
(W pid=9, ip=10.6.3.2) p5:954:3133 [6] NCCL INFO NET/IB : No device found. [repeated 15x across cluster]
(W pid=9, ip=10.6.3.2) p5:954:3133 [6] NCCL INFO Using network Socket [repeated 15x across cluster]
(W pid=9, ip=10.6.3.2) p5:954:3133 [6] NCCL INFO comm 0x7f rank 6 nranks 16 cudaDev 6 nvmlDev 6 busId b9000 commId 0x1 - Init START [repeated 15x across cluster]
"""  # noqa: E501
ABORT = """NCCL version {}
(gdb) bt
#0  0x00007fc349513d2d in __GI___pthread_timedjoin_ex (threadid=14, thread_return=0x0) at pthread_join_common.c:89
#1  0x00007fc204d33e27 in {}(ncclComm*) () from /usr/local/lib/libnccl.so.2
#2  0x00007fc204d345fd in ncclCommAbort () from /usr/local/lib/libnccl.so.2
"""
STACK = """NCCL version {}+cuda12.1
Thread 3438296 (idle): "Thread-41"
    commFree (init.cc:180)
    commReclaim (init.cc:1862)
    ncclCommAbort (init.cc:1931)
"""
LINKS = """[jane@{0} ~]$ ip a
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN
    inet 127.0.0.1/8 scope host lo
21: {1}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {2} qdisc noqueue state UNKNOWN
    inet {3}/16 scope global {1}
"""
BANNER = "=== {0} ===\n" + LINKS.split("\n", 1)[1]
PRIORITIES = """root@{0}:~# ethtool -S ens8np0 | grep prio > 1.txt ; sleep 1; diff -y 1.txt 2.txt
     rx_prio{1}_packets: 4939696624           |         rx_prio{1}_packets: {2}
     tx_prio{3}_packets: 4671266264           |         tx_prio{3}_packets: 4675230410
"""
ASKED = """root@{}:~# ip link show ens3f0np0
4: ens3f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {} qdisc mq state UP mode DEFAULT
"""
IFCONFIG = """[root@{} ~]# ifconfig ib0
ib0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu {}
        inet 10.1.0.{}  netmask 255.255.0.0  broadcast 10.1.255.255
"""
UNIQUE = (
    "AssertionError: Every node should have a unique IP address. Got 2 nodes with node ids ['ab', 'cd'] and {} unique"
    " IP addresses {{{}}}. Please check your network configuration.\n"
)
OLD = """ml3:32632:32662 [0] NCCL INFO NET : Using interface enp0s31f6:10.92.42.96<0>
{}:32632:32662 [0] misc/ibvwrap.cu:63 NCCL WARN Failed to open libibverbs.so[.1]
ml3:32632:32662 [0] NCCL INFO Using network Socket
NCCL version 2.3.7+cuda9.0
ml3:32632:32662 [0] NCCL INFO rank 0 nranks 4
ml3:32633:32663 [1] NCCL INFO rank 1 nranks 4
ml3:32634:32665 [2] NCCL INFO rank 2 nranks 4
ml3:32635:32664 [3] NCCL INFO rank 3 nranks 4
ml3:32632:32662 [0] NCCL INFO comm 0x7f1c1c3a9f60 rank 0 nranks 4 - COMPLETE
"""
RELOCATION = "./a.out: relocation error: {}: symbol {}, version {} not defined in file {} with link time reference\n"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (LOOPED.format(8) + MESH.format(8, REFUSED), "NET002"),
        (LOOPED.format(9) + LOOPED.format(8) + MESH.format(8, "no error"), "NET002"),
        (NUMBERED.format(6841231), "NET002"),
        ("RuntimeError: [c10d] rank 1: connect to 0.104.99.143:29500 timed out\n", "NET002"),
        ("W0825 util_rdma.h:547] NET/IB: read failed in ncclIbRoceGetVersionNum: Invalid argument\n", "NET008"),
        ("E0825 rdma_transport.cpp:91] Failed to query GID index 3 on mlx5_0: Invalid argument\n", "NET008"),
        ("ERROR [rdma_endpoint.cpp:61] failed to get gid entry: No data available [61]\n", "NET008"),
        ("[mu01:241:0:241]       ud_ep.c:278  Fatal: UD endpoint 0x1f to <no debug data>: unhandled timeout error\n",
         "NET008"),
        ("[error] util/pingpong.c:1580: fi_av_insert: number of addresses inserted = 0; number of addresses given ="
         " 1\n", "NET008"),
        (OFI.format("2.20.5", "1.18", 2), "JOB007"),
        (OFI.format("2.19.3", "1.18.2amzn1.0", 2), "JOB007"),
        (RAY, "NET005"),
        (ABORT.format("2.16.5", "commReclaim"), "JOB007"),
        (STACK.format("2.18.1"), "JOB007"),
        (RELOCATION.format("/opt/ucx/lib/libuct_ib.so.0", "mlx5dv_is_supported", "MLX5_1.8", "libmlx5.so.1"), "JOB002"),
        (RELOCATION.format("/opt/pp/libtorch_cuda.so", "ncclCommSplit", "NCCL_2", "libnccl.so.2"), "JOB002"),
        ("./all_reduce_perf: /lib/libibverbs.so.1: version `IBVERBS_1.14' not found (required by ./libucp.so)\n",
         "JOB002"),
        ("tf.FailedPreconditionError: Mismatched ALLREDUCE CPU/GPU device selection: One rank specified device CPU, but"
         " another rank specified device GPU.\n", "JOB006"),
        ("  Message:    connect() to 127.0.1.1:1024 failed\n  Error:      Connection refused (111)\n", "NET002"),
        ("$ ibv_rc_pingpong -d mlx5_1 -g 5 node2\ncan't read sgid of index 5\n", "NET008"),
        ("  what():  ibv_query_gid failed (errno 22) (Ib failure: Invalid argument)\n", "NET008"),
        ("InvalidArgumentError: Shape mismatch in the collective instance 100. Op at GPU:0 expected shape [10] but"
         " another member in the group expected shape [12]\n", "JOB006"),
        (UNIQUE.format(1, "'172.17.0.3'"), "NET002"),
    ],
)  # fmt: skip
def test_the_cause_comes_first(tmp_path: Path, text: str, first: str) -> None:
    answer = said(tmp_path, text)
    assert [finding["id"] for finding in answer["findings"]][:1] == [first]
    assert answer["verdict"]["state"] != "healthy"


@pytest.mark.parametrize(
    "text",
    [
        LOOPED.format(0) + LOOPED.format(1),
        LOOPED.format(8) + "INFO 08-08 15:03:20 [core.py:866] Engine core initialized\n",
        "Failed to query GID index 0, trying the next one: Invalid argument, retrying\n",
        "If reading the GID failed with Invalid argument, set NCCL_IB_GID_INDEX.\n",
        "cat: /sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0: Invalid argument\n",
        "chown: cannot find gid 1000: No such group\n",
        OLD.format("ml3"),
        LINKS.format("c001", "eth1@if2", 9000, "172.16.0.1") + LINKS.format("login", "eth0", 9000, "172.16.255.4"),
        LINKS.format("c001", "eth1", 9000, "172.16.0.1") + LINKS.format("login", "eth0", 1500, "10.1.0.4"),
        LINKS.format("c001", "eth1", 9000, "172.16.0.1") + LINKS.format("c002", "eth1", 1500, "172.16.0.2")
        + LINKS.format("c002", "eth1", 9000, "172.16.0.2"),
        LINKS.format("c001", "docker0", 9000, "172.17.0.1") + LINKS.format("c002", "docker0", 1500, "172.17.0.1"),
        PRIORITIES.format("h1", 3, 4943711983, 3) + PRIORITIES.format("h2", 3, 4943711983, 3),
        PRIORITIES.format("h1", 0, 4939697000, 3) + PRIORITIES.format("h2", 0, 4939697000, 3),
        "WARNING: libmlx5.so.1 lacks symbol mlx5dv_x, continuing without it\n",
        "W0408 11:22 rdma.cc:11] GID index 0 is empty, using index 3 instead\n",
        "If the NVSHMEM host library version does not match, rebuild the device library.\n",
        UNIQUE.format(2, "'10.1.0.3', '10.1.0.4'").replace("AssertionError", "INFO"),
        "UCP version check: UCX version mismatch: none\n",
        ASKED.format("a1", 4200) + ASKED.format("a2", 4200),
        ASKED.format("a1", 4200) + ASKED.format("a2", 1500).replace("ip link show ens3f0np0", "ip link"),
        IFCONFIG.format("n1", 2044, 1) + IFCONFIG.format("n2", 2044, 2),
    ],
)  # fmt: skip
def test_the_same_words_accuse_nobody(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []


@pytest.mark.parametrize(
    ("version", "libfabric", "kind"), [("2.18.5", "1.18", 2), ("2.20.5", "1.20", 2), ("2.20.5", "1.18", 1)]
)
def test_another_version_is_not_the_known_fault(tmp_path: Path, version: str, libfabric: str, kind: int) -> None:
    answer = said(tmp_path, OFI.format(version, libfabric, kind))
    assert "JOB007" not in [finding["id"] for finding in answer["findings"]]


def test_an_abort_of_a_release_with_two_known_faults_is_told_once(tmp_path: Path) -> None:
    findings = said(tmp_path, ABORT.format("2.25.1", "commReclaim"))["findings"]
    assert [each["fix"][0] for each in findings if each["id"] == "JOB007"] == ["NCCL 2.26.2 or later"]
    assert said(tmp_path, ABORT.format("2.14.3", "commReclaim"))["findings"] == []


MISSING = """n1:7:7 [0] NCCL INFO NCCL_TOPO_FILE set by environment to {}
n1:7:7 [0] NCCL INFO Could not open XML topology file {} : No such file or directory
n1:7:9 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x9 - Init START
"""


def test_a_topology_file_that_a_setting_names_and_is_not_there_is_told(tmp_path: Path) -> None:
    assert loud(tmp_path, MISSING.format("/etc/nccl/a.xml", "/etc/nccl/a.xml")) == ["TOP001"]


def test_a_file_that_nccl_looks_for_by_itself_may_be_missing(tmp_path: Path) -> None:
    own = "/var/run/nvidia-topologyd/virtualTopology.xml"
    assert loud(tmp_path, MISSING.format("", own)) == []
    assert loud(tmp_path, MISSING.split("\n", 1)[1].format(own)) == []
