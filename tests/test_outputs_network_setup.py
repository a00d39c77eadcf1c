"""What people paste of a network that is set up wrongly, or that does not lead to a peer: commands, health scripts,
tables, switches, notes. The fault comes first; the same words where nothing is wrong accuse nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud, said

GLIBC = "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /opt/ofi/lib/libnccl-net.so)"
ROW = "{}: 4: ens2f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {} qdisc mq state UP mode DEFAULT qlen 1000\n"
METRIC = 'roce_pfc_enabled{{instance="g{}",device="mlx5_3",priority="{}"}} {}\n'
PFC = "[{}] ens6f0np0: PFC {} on priority 3\n[PASS] ens6f0np0: ECN enabled on priority 3\n"
COUNTERS = """$ ethtool -S ens2np0 | egrep 'discards|pause'
     rx_discards_phy: {0}
     rx_prio0_discards: {0}
     rx_prio3_pause: {1}
     tx_prio3_pause: 0
"""
TRACEPATH = """ 1?: [LOCALHOST]                      pmtu 9000
 1:  10.10.4.1                                             0.380ms pmtu 1500
     Resume: pmtu {} hops 2 back 2
"""
PING = """From 10.8.3.9 icmp_seq=1 Destination Host Unreachable
{}--- 10.8.3.7 ping statistics ---
"""
DRIVER = "mlx5_cmd_out_err:834:(pid 5): INIT2RTR_QP(0x503) op_mod(0x0) failed, status bad parameter(0x3), err(-22)\n"
IWARP = """                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : irdma0
 Number of qps   : 1            Transport type : IW
 rdma_cm QPs     : ON
$ ib_write_bw -d irdma0 10.3.0.9
 Failed to modify QP 5 to RTR, errno 22
"""


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("ping: local error: message too long, mtu=1500\n2 packets transmitted, 0 received, 100% packet loss\n",
         "NIC004"),
        ("".join(f"  h{n:02}: trust={'pcp' if n == 3 else 'dscp'} pfc=3 ecn=on\n" for n in range(1, 5)), "NET009"),
        ("RuntimeError: Cannot find network interface 'ib0' given by GLOO_SOCKET_IFNAME\n", "NET002"),
        ("mpirun: error while loading shared libraries: libmpi.so.40: cannot open shared object file\n", "JOB009"),
        ("[Tue Mar  5 10:01:48 2024] ib0: P_Key 0x8012 is not found\n", "NET008"),
        (DRIVER, "NET008"),
        ("ibrc.cpp:513: non-zero status: 110 ibv_modify_qp failed to RTR: Connection timed out (gid index 0)\n",
         "NET008"),
        ("ibwarn: [12] mad_rpc: _do_madrpc failed; dport (Lid 1)\nsminfo: iberror: failed: query\n", "NET008"),
        (PING.format(""), "NET002"),
        ("$ ip route get 10.8.3.7\nRTNETLINK answers: Network is unreachable\n", "NET002"),
        ("nc: connect to 10.2.0.5 port 29500 (tcp) failed: Connection timed out\n", "NET002"),
        ("29500/tcp filtered unknown\n5201/tcp  filtered targus-getdata1\n", "NET002"),
        ("[1.1] [UFW BLOCK] IN=eth0 OUT= SRC=10.0.0.4 DST=10.0.0.5 LEN=60 PROTO=TCP SPT=41233 DPT=29500 SYN\n",
         "NET002"),
        ("  Message:    connect() to 192.168.122.1:1024 failed\n  Error:      Operation now in progress (115)\n",
         "NET002"),
        ("RuntimeError: gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find interface for: [0.19.137.9]\n",
         "NET002"),
        ("No network interface found for bootstrap, NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=eth9\n", "NET002"),
        ("UCX  WARN  transport 'rc_mlx5' is not available, please use one or more of: self, shm, tcp\n", "NET001"),
        (f"g3:1:9 [2] NCCL INFO NET/Plugin: Failed to load plugin libnccl-net.so: {GLIBC}\n"
         "g3:1:9 [2] NCCL INFO Using network Socket\n", "NET005"),
        (f"Last error:\nCould not find: libnccl-net-ofi.so. Error: {GLIBC}\n", "NET005"),
        ("$ ldd /opt/ofi-nccl/lib/libnccl-net.so | grep 'not found'\n        libfabric.so.1 => not found\n", "NET005"),
        ("g1: aws-ofi-nccl-1.9.1-1.x86_64\ng3: package aws-ofi-nccl is not installed\n", "NET005"),
        ('error mounting "/dev/infiniband" to rootfs: no such file or directory\n', "HST002"),
        ("  30331 input errors  30331 CRC  0 overrun\n", "NIC003"),
    ],
)  # fmt: skip
def test_the_fault_of_the_network_comes_first(tmp_path: Path, text: str, first: str) -> None:
    answer = said(tmp_path, text)
    assert [finding["id"] for finding in answer["findings"]][:1] == [first]
    assert answer["verdict"]["state"] != "healthy"


@pytest.mark.parametrize(
    "text",
    [
        PFC.format("PASS", "enabled"),
        "[PASS] ens6f0np0: no lossy queue drops, ECN enabled\nPFC mismatch: none\n",
        "If PFC is not enabled on the priority that the traffic uses, packets are dropped under load.\n",
        "An MTU mismatch leads to failed queue pairs. Check that the MTU matches on both ends.\n",
        COUNTERS.format(0, 0),
        COUNTERS.format(8123731, 12),
        COUNTERS.format(12, 0),
        "".join(METRIC.format(n, priority, int(priority == 3)) for n in range(3) for priority in range(8)),
        "prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off\n",
        "chown: invalid group: 'gid 1000' not found\nuid/gid mismatch on /mnt/data\n",
        "ssl: pkey mismatch, invalid pkey\nhash collision detected in shard 12\n",
        "chain INPUT: reject with icmp type host-unreachable\nopensm: not running\n",
        "mlx5_0/ports/1/gids/5:0000:0000:0000:0000:0000:0000:0000:0000\n",
        "localhost resolves to 127.0.0.1\n",
        "OK: interface rdma0 MTU is 9000, expected 9000\n",
        '{"check":"mtu","node":"g17","interface":"bond0","expected":9000,"actual":9000,"status":"pass"}\n',
        "".join(ROW.format(f"node{n}", 9000) for n in range(1, 5)),
        "".join(f"  h{n:02}: trust=dscp pfc=3 ecn=on\n" for n in range(1, 5)),
        "node      dev      mtu   expected\ng201      eth100   9000  9000\ng202      eth100   9000  9000\n",
        "mtu 1500 on eno1 (management), mtu 9000 on rail0..rail7\n",
        TRACEPATH.format(9000),
        "partition check: ok\nmlx5_0 pkey[0]=0xffff pkey[1]=0x0000\n",
        "[node-health] PASS roce_gid: mlx5_3 index 3\n",
        "sminfo: sm lid 1 sm guid 0xb83fd20300a1b2c3, activity count 881231 priority 14 state 3 SMINFO_MASTER\n",
        "Jan 10 03:11:20 112233 [7F001700] 0x80 -> Entering STANDBY state\n",
        PING.format("64 bytes from 10.8.3.7: icmp_seq=2 ttl=64 time=0.2 ms\n"),
        "g01 -> g02  reachable\ng01 -> g03  reachable\n0 unreachable\n",
        "Connection to 10.0.0.5 29500 port [tcp/*] succeeded!\nfirewalld: inactive (dead)\n",
        "[1.1] [UFW BLOCK] IN=eth0 OUT= SRC=10.0.0.4 DST=224.0.0.251 LEN=32 PROTO=2\n",
        "INFO: Using TCP transport as requested (MC_FORCE_TCP=1)\n",
        "$ ldd /opt/ofi-nccl/lib/libnccl-net.so\n        libfabric.so.1 => /opt/efa/lib/libfabric.so.1 (0x7f1)\n",
        "$ ldd ./a.out\n        libfoo.so.1 => not found\n",
        "  12 input errors  12 CRC  0 overrun\n",
        "spine-2 rebooted successfully, all links healthy\n",
        IWARP,
    ],
)
def test_a_network_in_order_accuses_nobody(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []
