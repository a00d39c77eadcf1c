"""Outputs in which the numbers of one thing do not agree: processes and ranks, devices and their nodes, nodes that are
wanted and seen; and parts that say that they run no firmware. Beside each stands one in which all is well."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud, said

TABLE = "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
RANK = "#  Rank  {0} Group  0 Pid {1} on    dgx01 device  {2} [0x{3}] NVIDIA H100 80GB HBM3\n"
LIST = "# nThread 1 nGpus 1 minBytes 128 maxBytes 1024 step: 2(factor) validation: 1 graph: 0\n#\n# Using devices\n"
MIG = RANK.replace("HBM3", "HBM3 MIG 1g.10gb")
LINE = "I0902 09:57:32.838156       1 computedomain.go:200] numNodes: 2, nodes seen: {}\n"
LS = (
    "root@pod-0:/# ls /sys/class/infiniband\n{}\nroot@pod-0:/# ls /dev/infiniband/\n{}\nroot@pod-0:/# ibv_devices\n"
    "    device                 node GUID\n    ------              ----------------\n{}"
)
GUID = "    erdma_{}             02163efffe1041e{}\n"
PCI = "{} Memory controller: Mellanox Technologies MT28{} Family [{} Flash Recovery]\n"
EVENT = (
    '[{{"component": "accelerator-nvidia-error-xid",\n"events": [{{"time": "2024-11-20T04:10:23Z",\n'
    '"name": "error_xid",\n"message": "{}"}}]}}]\n'
)
FAULT = "[ 4703.568967] AMD-Vi: Event logged [IO_PAGE_FAULT device=41:00.0 domain=0x000e address=0x{} flags=0x0030]\n"
NVME = "[ 4703.1] nvme 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000e address=0x{} flags=0x0030]\n"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (LIST + RANK.format(0, 71, 0, "1a") + RANK.format(0, 72, 0, "1a"), "JOB004"),
        (LIST + RANK.format(0, 71, 0, "1a") + LIST + RANK.format(0, 72, 0, "1a") + TABLE + TABLE, "JOB004"),
        (LINE.format(1), "NVL005"),
        (LINE.format(2) + LINE.format(1), "NVL005"),
        ("$ lspci | grep -i mellanox\n" + PCI.format("03:00.0", 800, "ConnectX-5"), "NIC003"),
        (PCI.format("0000:a1:00.0", 841, "BlueField-2 SoC"), "NIC003"),
        ("-W- Device 03:00.0 is in livefish mode, only burning is possible\n", "NIC003"),
        (FAULT.format("000003f80001b100") + FAULT.format("000002f800010000"), "PCI004"),
    ],
)
def test_the_fault_comes_first(tmp_path: Path, text: str, first: str) -> None:
    answer = said(tmp_path, text)
    assert [finding["id"] for finding in answer["findings"]][:1] == [first]
    assert answer["verdict"]["state"] != "healthy"


@pytest.mark.parametrize(
    "text",
    [
        LIST + RANK.format(0, 71, 0, "1a") + RANK.format(1, 72, 1, "40"),
        LIST + RANK.format(0, 71, 0, "1a") + TABLE + LIST + RANK.format(0, 72, 0, "1a"),  # one after the other
        LIST + RANK.format(0, 71, 0, "1a") + RANK.format(0, 71, 0, "1a"),  # the same process, quoted twice
        LIST + MIG.format(0, 71, 0, "1a") + MIG.format(0, 72, 0, "1a"),
        LINE.format(1) + LINE.format(2),
        LS.format("erdma_0  erdma_1", "rdma_cm  uverbs0  uverbs1", GUID.format(0, "a") + GUID.format(1, "b")),
        LS.format("erdma_0", "rdma_cm  uverbs0", GUID.format(0, "a")),
        LS.format("mlx5_0  mlx5_1", "rdma_cm  uverbs0", "").replace("pod-0:/# ls /sys", "host:~# ls /sys"),
        "03:00.0 Ethernet controller: Mellanox Technologies MT27800 Family [ConnectX-5]\n",
        "00:05.0 Memory controller: Intel Corporation Sky Lake-E RAS (rev 04)\n",
        "If the device is in livefish mode, burn it with mstflint.\n",
        EVENT.format("no xid error detected"),
        EVENT.format("xid 119 cleared after reset"),
        FAULT.format("00000000f61390a8") * 3,
        FAULT.format("000003f80001b100") + FAULT.format("00000000f61390a8"),  # one may be a stray
        FAULT.format("00007ffffffb1000") * 3,  # handed out by the IOMMU itself, from the end downwards
        NVME.format("000003f80001b100") * 3,
    ],
)
def test_the_same_words_without_a_fault_accuse_nobody(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []
