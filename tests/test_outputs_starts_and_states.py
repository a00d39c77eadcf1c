"""Outputs on devices that did not start, links that run below what they can do, and peers that are gone. Each text is
what one tool or one person says; beside each stands one in the same words in which nothing is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pasted import loud, said
from topodiag.api import diagnose

PROBE = "[   11.3] mlx5_core 0000:69:01.0: probe with driver mlx5_core failed with error -{}\n"
BNXT = "[   14.1] bnxt_en 0000:41:00.0: probe of 0000:41:00.0 failed with error -19\n"
WAITS = (
    "[  121.3] mlx5_core 0000:03:00.0: mlx5_function_setup:1236:(pid 182): Firmware over 120000 MS in {}, aborting\n"
)
STARTED = "[  300.0] mlx5_core 0000:69:01.0 ens1np0: Link up\n"
IMEX = "[Sep 01 2026 09:0{}] [{}] [tid 937292] {}\n"
IDENTIFIED = IMEX.format("8:12", "INFO", "IMEX version 580: Identified this node as ID 0, using bind IP of '10.0.3.17'")
FOUND = "Connection established to node 1 with ip address 10.0.5.44. Number of times connected: {}"
LOST = IMEX.format("9:40", "ERROR", "Node disconnect event detected for node 1 with address tray-1")
REFUSED = IMEX.format("9:46", "ERROR", "Failed to get export ref for UUID: 5d1c for request from node id 0")
STOPPED = IMEX.format("9:41", "INFO", "Received SIGTERM, shutting down")
FULL = (
    "RuntimeError: CUDA out of memory. Tried to allocate 14.00 MiB (GPU 1; 15.78 GiB total capacity;"
    " {} already allocated; 53.75 MiB free; {})\n"
)
NEWER = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of"
    " which 1.02 GiB is free. Including non-PyTorch memory, this process has {} memory in use.\n"
)
LNK = "{} LnkCap: Speed 32GT/s, Width x{}    LnkSta: Speed {}, Width x{}\n"
NIC = (
    "01:00.0 Ethernet controller: Mellanox Technologies MT27500 Family [ConnectX-3]\n"
    "\tLnkCap:\tPort #8, Speed 8GT/s, Width x{}, ASPM L0s\n\tLnkSta:\tSpeed 8GT/s, Width x{}\n"
)
CA = (
    "CA 'mlx5_{0}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: {1}\n\t\tPhysical state: {2}\n"
    "\t\tRate: {3}\n\t\tBase lid: {4}\n\t\tSM lid: 1\n\t\tLink layer: InfiniBand\n"
)
LOGGED = (
    '{{"level":"{}","ts":"2025-10-16T10:34:29Z","msg":"fabric state is {}","reason":"GPU 0: state=Not Supported"}}\n'
)
ACS = "$ sudo lspci -vvv | grep ACSCtl\n" + 8 * (
    "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir{0} CmpltRedir{0} UpstreamFwd{0} EgressCtrl- DirectTrans-\n"
)
REPLY = (
    "n1:7:9 [0] NCCL INFO Channel 00 : 8 -> 0 [receive] via NET/IB/0/GDRDMA\n"
    "n1:7:9 [0] transport/net_ib.cc:788 NCCL WARN NET/IB : Got completion with error 4, opcode 1, len 21938, vendor err"
    " 81\n"
)


def cards(*up: bool) -> str:
    """Adapters with one port each, of which some have no link."""
    return "".join(
        CA.format(at, *(("Active", "LinkUp", 400, 41 + at) if each else ("Down", "Disabled", 10, 65535)))
        for at, each in enumerate(up)
    )


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (PROBE.format(22), "NIC001"),
        (BNXT, "NIC001"),
        ("[ 12.0] ice 0000:17:00.0: Firmware recovery mode detected. Limiting functionality.\n", "NIC001"),
        (WAITS.format("pre-initializing state"), "NIC001"),
        (WAITS.format("initializing state"), "NIC001"),
        (IDENTIFIED + IMEX.format("8:15", "INFO", FOUND.format(1)) + LOST, "NVL005"),
        (IDENTIFIED + REFUSED, "NVL005"),
        (FULL.format("2.68 GiB", "77.13 MiB cached"), "JOB004"),
        (FULL.format("900.00 MiB", "1.10 GiB reserved in total by PyTorch"), "JOB004"),
        (NEWER.format("10.24 GiB"), "JOB004"),
        (NIC.format(4, 1), "PCI001"),
        (CA.format(0, "Active", "LinkUp", 400, 41) + CA.format(1, "Down", "Polling", 10, 42), "NIC001"),
        ('$ srun bash -c "ulimit -l"\n64\n$ ulimit -l\nunlimited\n', "HST001"),
        ("$ kubectl exec worker-0 -- sh -c 'ulimit -l'\n64\n", "HST001"),
    ],
)
def test_the_fault_comes_first(tmp_path: Path, text: str, first: str) -> None:
    answer = said(tmp_path, text)
    assert [finding["id"] for finding in answer["findings"]][:1] == [first]
    assert answer["verdict"]["state"] != "healthy"


@pytest.mark.parametrize(
    "text",
    [
        PROBE.format(517),  # the driver is asked again
        PROBE.format(110) + STARTED,
        "[   11.3] mlx5_core 0000:69:01.0: Waiting for FW initialization, timeout abort in 100s\n",
        IDENTIFIED + LOST + IMEX.format("9:50", "INFO", FOUND.format(2)),
        IDENTIFIED + LOST + STOPPED,
        LNK.format("01:00.0", 16, "2.5GT/s (downgraded)", 16),
        LNK.format("0002:01:00.0", 4, "32GT/s", 4),
        NIC.format(4, 2),  # the slot may have no more
        NIC.format(4, 4),
        cards(True, False, True, False),  # second ports
        cards(True, True, False, False),  # the same, with all first ports before them
        cards(*[True] * 8, False, False),  # a card for storage
        LOGGED.format("info", "healthy"),
        LOGGED.format("warn", "healthy"),
        '{"level":"error","msg":"failed to scrape GPU metrics: context deadline exceeded"}\n',
        '{"level":"warn","msg":"connection to storage timed out, retrying"}\n',
        "GPU fabric health: Healthy\n",
        "If the fabric state is not healthy, restart the fabric manager.\n",
        "GPU clocks dropped to 210 MHz because the GPU is idle\n",
        "- GPU clock stays at about 300 MHz while idle\n",
        "Lid 435:GUID 8f104003f6398: Linkwidth (4X) at maximum width supported (4X)\n",
        "mce0: flags=8843<UP>\n\tstatus: active\n",
        '$ srun bash -c "ulimit -l"\nunlimited\n$ ulimit -l\n64\n',
    ],
)
def test_the_same_words_without_a_fault_accuse_nobody(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []


@pytest.mark.parametrize(
    "text",
    [
        FULL.format("14.60 GiB", "77.13 MiB cached"),
        FULL.format("13.00 GiB", "14.70 GiB reserved in total by PyTorch"),
        NEWER.format("78.08 GiB"),
    ],
)
def test_a_process_that_fills_its_gpu_alone_shares_it_with_nobody(tmp_path: Path, text: str) -> None:
    assert "JOB004" not in {finding["id"] for finding in said(tmp_path, text)["findings"]}


@pytest.mark.parametrize(("sign", "first"), [("+", "PCI004"), ("-", "NET008")])
def test_outputs_that_name_no_host_may_be_of_any_host_of_a_job(tmp_path: Path, sign: str, first: str) -> None:
    (tmp_path / "acs.txt").write_text(ACS.format(sign))
    (tmp_path / "job.log").write_text(REPLY)
    document = json.loads(diagnose(str(tmp_path)).to_json())
    assert [finding["id"] for finding in document["findings"]][:1] == [first]


def test_outputs_that_name_another_host_than_the_job_has_are_not_of_it(tmp_path: Path) -> None:
    (tmp_path / "acs.txt").write_text("[root@n9 ~]# hostname\n" + ACS.format("+"))
    (tmp_path / "job.log").write_text(REPLY)
    document = json.loads(diagnose(str(tmp_path)).to_json())
    assert [finding["id"] for finding in document["findings"]][:1] == ["NET008"]


@pytest.mark.parametrize(
    ("version", "modules", "wrong"),
    [
        ("2.12.9+cuda11.6", "", True),
        ("2.18.3+cuda12.1", "", False),  # DMA-BUF may do it
        ("2.12.9+cuda11.6", "nvidia_peermem 16384 0\n", False),
    ],
)
def test_a_node_without_the_module_lacks_gpudirect_where_nccl_has_no_other_way(
    tmp_path: Path, version: str, modules: str, wrong: bool
) -> None:
    (tmp_path / "modules.txt").write_text(f"$ lsmod | grep -E 'nvidia_peermem|nv_peer_mem'\n{modules}$\n")
    (tmp_path / "job.log").write_text(
        f"n1:7:7 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB eth0:10.0.1.2<0>\n"
        f"NCCL version {version}\n"
    )
    document = json.loads(diagnose(str(tmp_path)).to_json())
    assert ("GDR001" in {finding["id"] for finding in document["findings"]}) is wrong
