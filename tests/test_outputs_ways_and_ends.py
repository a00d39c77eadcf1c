"""Ways to peers that lead elsewhere, a GPU that failed under those that wait, a driver that is behind, and steps that
do nothing but wait: the cause comes first, and the same words of a job that is well accuse nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud, said

WATCHDOG = (
    "[rank{0}]:[E ProcessGroupNCCL.cpp:563] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12"
    ", OpType=ALLREDUCE, NumelIn=33554432, NumelOut=33554432, Timeout(ms)=600000) ran for 600021 milliseconds before"
    " timing out.\n"
)
ENDED = (
    "[rank3]:[E ProcessGroupNCCL.cpp:1414] [PG 2 Rank 3] Process group watchdog thread terminated with exception: {}\n"
)
SOCKETS = """$ ip -br addr
lo               UNKNOWN        127.0.0.1/8
eno1             UP             10.20.3.12/{0}
ens1f0           UP             10.20.5.12/{0}
$ ss -tn
State   Recv-Q  Send-Q   Local Address:Port      Peer Address:Port
ESTAB   0       0        10.20.3.12:22           10.20.5.13:52834
ESTAB   0       {1}      {2}:37178        {3}:{4}
"""
NETSTAT = """2: eno1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP
    inet 10.20.3.12/16 brd 10.20.255.255 scope global eno1
3: ens1f0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP
    inet 10.20.5.12/16 brd 10.20.255.255 scope global ens1f0
$ netstat -tn
tcp        0  412160 10.20.3.12:44210        10.20.5.15:43603        ESTABLISHED
"""
NCCL = """pod-7:826:826 [0] NCCL INFO Bootstrap : Using eth0:10.2.9.4<0>
pod-7:826:826 [0] NCCL INFO cudaDriverVersion {0}
NCCL version 2.14.3+cuda{1}
pod-7:826:907 [0] NCCL INFO NET/IB : No device found.
pod-7:826:907 [0] NCCL INFO NET/Socket : Using [0]eth0:10.2.9.4<0>
pod-7:826:907 [0] NCCL INFO Using network Socket
"""
BEHIND = (
    "\npod-7:826:907 [0] init.cc:1236 NCCL WARN Cuda failure 'API call is not supported in the installed CUDA driver'\n"
)
METER = "Epoch: [0][{}/5005]\tTime {:.3f} ({:.3f})\tData {:.3f} ({:.3f})\tLoss 6.9073 (6.9073)\n"


def meters(*steps: tuple[int, float, float]) -> str:
    return "".join(METER.format(at, took, took, waited, waited) for at, took, waited in steps)


FAULTS = {
    "a GPU that failed": (ENDED.format("CUDA error: an illegal memory access was encountered")
                          + "".join(map(WATCHDOG.format, range(3))), "JOB005"),
    "the same behind the timeouts": ("".join(map(WATCHDOG.format, range(3)))
                                     + ENDED.format("CUDA error: unspecified launch failure"), "JOB005"),
    "a port of Ray": ("F1119 08:22:23.602082 15136 15136 redis_context.cc:298] Could not establish connection to redis"
                      " 161.97.20.115:12662 (context.err = 1)\n", "NET002"),
    "Ray's head": ("[2024-05-02 10:11:12,713 E 411 411] gcs_rpc_client.h:552: Failed to connect to GCS at address"
                   " 10.0.4.7:6379 within 60 seconds.\n", "NET002"),
    "a driver behind": (NCCL.format(11000, "11.7") + BEHIND, "JOB005"),
    "two steps that wait": (meters((0, 48.8, 45.0), (10, 22.4, 22.3), (20, 10.4, 10.4)), "JOB008"),
}  # fmt: skip
WELL = {
    "Ray tries again": "W1119 08:22:20.440125 15136 15136 redis_context.cc:303] Failed to connect to Redis, retrying.\n"
                       "[2024-05-02 10:11:12,713 I 411 411] gcs_client.cc:81: Connected to GCS at 10.0.4.7:6379\n",
    "a database": "app: could not establish connection to postgres 10.3.2.1:5432, using the cache\n",
    "the right interface": SOCKETS.format(16, 305756, "10.20.5.12", "10.20.5.15", 43603),
    "ss of another interface":
        SOCKETS.format(20, 305756, "10.20.3.12", "10.20.5.15", 43603).replace("10.20.", "192.168."),
    "netstat of another interface": NETSTAT,
    "networks of their own": SOCKETS.format(24, 305756, "10.20.3.12", "10.20.5.15", 43603),
    "nothing waits": SOCKETS.format(16, 0, "10.20.3.12", "10.20.5.15", 43603),
    "a server": SOCKETS.format(16, 305756, "10.20.3.12", "10.20.5.200", 2049),
    "a new enough driver": NCCL.format(12040, "11.7"),
    "an older driver that is enough": NCCL.format(11040, "11.7"),
    "the loader fills its queue": meters((0, 48.8, 45.0), (10, 1.2, 0.9), (20, 0.31, 0.0)),
    "short steps": meters((0, 4.8, 4.0), (10, 0.21, 0.2), (20, 0.2, 0.19)),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_the_cause_comes_first(tmp_path: Path, name: str) -> None:
    text, check = FAULTS[name]
    first = first_of(tmp_path, text)
    assert first["id"] == check
    assert first["evidence"]


@pytest.mark.parametrize("name", WELL)
def test_nothing_is_wrong(tmp_path: Path, name: str) -> None:
    assert loud(tmp_path, WELL[name]) == []


def test_the_rank_whose_gpu_failed_is_named_and_no_other_wait_is_told(tmp_path: Path) -> None:
    findings = said(tmp_path, FAULTS["a GPU that failed"][0])["findings"]
    assert [finding["id"] for finding in findings] == ["JOB005"]
    assert "rank 3" in findings[0]["message"]


def test_sockets_are_no_remark_where_another_error_ended_the_job(tmp_path: Path) -> None:
    before = said(tmp_path, NCCL.format(11000, "11.7"))["findings"]
    after = said(tmp_path, FAULTS["a driver behind"][0])["findings"]
    assert "NET001" in [each["id"] for each in before]
    assert "NET001" not in [each["id"] for each in after]
