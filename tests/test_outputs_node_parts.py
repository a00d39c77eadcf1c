"""Outputs on the parts of a node that carry traffic: PCIe, ACS, IOMMU, peer memory, limits, ports, adapters. Each text
is what one tool or one person says; beside each stands one in the same words in which nothing is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud, said
from tests.test_single_outputs import POWER

WIDTH = '{{"component": "pci", "states": [{{"health": "{}", "reason": "GPU 2 runs at x8 instead of x16"}}]}}\n'
FM = '[{"component": "fm", "states": [{"health": "Unhealthy", "reason": "fabric manager is not running"}]}]\n'
SICHEK = '{{"checkers": [{{"name": "pcie-acs", "level": "critical", "status": "{}", "error_name": "{}"}}]}}\n'
ARISTA = (
    "Jul  9 05:11:0{} leaf12 Ebra: %LINEPROTO-5-UPDOWN: Line protocol on Interface Ethernet12/1, changed state to {}\n"
)
NETWORKD = "May 02 11:10:09 n12 systemd-networkd[1102]: ens8f0np0: {} carrier\n"
BOND = "Jun  3 14:02:1{} n7 kernel: bond0: (slave ens2f0np0): link status definitely {}\n"
FLAP = "Jun 03 11:{} n1 kernel: mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link {}\n"
PROCESSES = """| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|=========================================================================================|
|    0   N/A  N/A         1201331      C   python                                61022MiB |
|    1   N/A  N/A         1201332      C   python                                61022MiB |
|    2   N/A  N/A         1201333      C   python                                61022MiB |
"""
BURN = "|    2   N/A  N/A          990121      C   ./gpu_burn                             9121MiB |\n"
PERFTEST = "cuMemAlloc() of a 131072 bytes GPU buffer\nCouldn't allocate MR\nfailed to create mr\n"
REG = "[1.2] [a:8:0] ib_md.c:309 UCX  ERROR ibv_reg_mr(address=0x7f, length=8, access=0xf) failed: Bad address\n"
SEL = "   31 | 07/14/2024 | 11:22:03 | Slot / Connector PCIe Slot 7 | Fault Status | {}\n"
STATES = "".join(f"/sys/class/infiniband/mlx5_{at}/ports/1/state:{{{at}}}\n" for at in range(16))
DOWNS = "".join(f"rdma{at}      link_down_events_phy: {{}}\n".format(41 if at == 2 else 0) for at in range(8))
REPLAYS = (
    "|       -> PCIe system | Warning                                                  |\n"
    "|                      | Detected 214 PCIe replays per minute for GPU 5 :         |\n"
)
DUMPED = (
    "systemd-coredump[912]: Process 90112 (python) of user 1007 dumped core.\n #0  0x7f n/a (libnccl.so.2 + 0xa1f)\n"
)
PROTECTION = (
    "[2.1] traps: pt_main_thread[7]: general protection fault ip:7f8a2b1c sp:7f error:0 in libnccl.so.2.21.5[7f8+5e]\n"
)
SPEEDS = "".join(f"ens{at}np0\n\tSpeed: {{}}Mb/s\n" for at in range(4))
PMON = "# gpu         pid   type     sm    mem    enc    dec    command\n" + "".join(
    f"    {at}     22110{at}     C     88     41      -      -    python\n" for at in range(4)
)
SWP = "2025-02-02T03:11:{} leaf02 switchd[2211]: sync_port.c:1234 swp5: link {}\n"
RATES = "".join(f"/sys/class/infiniband/mlx5_{at}/ports/1/rate:{{}} Gb/sec (4X HDR)\n" for at in range(8))
DMAR = (
    "[ 8811.2] DMAR: [DMA Write NO_PASID] Request device [41:00.0] fault addr 0x38ff7 [fault reason 0x05] not set\n"
    "[ 8811.9] NVRM: Xid (PCI:0000:41:00): 31, pid=2211, name=python, Ch 00000009\n"
)
REDFISH = '{{"Id": "771", "Severity": "{}", "Message": "A PCIe slot power fault was detected on Slot 5."}}\n'
IBSTAT = "CA 'mlx5_0'\n\tCA type: MT4125\n\tPort 1:\n\t\tState: {}\n\t\tPhysical state: LinkUp\n\t\tRate: {}\n"
MODULES = "".join(
    f"{host}   {driver}    {module}     24.01\n"
    for host, driver, module in (
        ("Host", "driver", "nvidia_peermem"), ("h01", "550.90", "loaded"), ("h02", "550.90", "{}"),
        ("h03", "550.90", "loaded"),
    )
)  # fmt: skip
BER = "port leaf-2/31: effective BER {} is {} the threshold of 1e-12, raw BER 4e-05\n"


def states(*down: int) -> str:
    return STATES.format(*("1: DOWN" if at in down else "4: ACTIVE" for at in range(16)))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (WIDTH.format("Unhealthy"), "PCI001"),
        (REPLAYS, "PCI003"),
        ("pcieport 0000:64:01.0: pciehp: Slot(9): Power fault\n", "PCI003"),
        (SEL.format("Asserted"), "PCI003"),
        (SICHEK.format("abnormal", "PCIeACSNotClosed"), "PCI004"),
        ("ibrc.cpp:nvshmemt_init:1851: neither nv_peer_mem, or nvidia_peermem detected. Skipping"
         " transport.\n", "GDR001"),
        ("E0411 09:11:21.0 4 rdma_context.cpp:192] Failed to register memory 0x7f02: Bad address [14]\n", "GDR001"),
        (REG, "GDR001"),
        (PERFTEST, "GDR001"),
        (FM, "NVL005"),
        ("=>> PBS: job killed: mem 525336576kb exceeded limit 524288000kb\n", "JOB009"),
        ("441221            train OUT_OF_ME+    0:125                 900Gn\n", "JOB009"),
        ("systemd[2231]: train.scope: Failed with result 'oom-kill'.\n", "JOB009"),
        (DUMPED, "JOB009"),
        (PROTECTION, "JOB009"),
        ("It appears as if there is not enough space for /dev/shm/vader.c12 (the backing file).\n", "HST001"),
        ("UCX  ERROR Not enough memory to write total of 4292720 bytes. Please check that /dev/shm has"
         " more.\n", "HST001"),
        ("allocate some locked memory.  This typically can indicate that the\nmemlock limits are set too low.\n",
         "HST001"),
        ("MEMLOCK  max locked-in-memory address space     67108864  67108864 bytes\n", "HST001"),
        (PROCESSES + BURN, "JOB004"),
        (ARISTA.format(2, "down") + ARISTA.format(9, "up"), "NIC003"),
        (ARISTA.format(2, "down"), "NIC001"),
        ((NETWORKD.format("Lost") + NETWORKD.format("Gained")) * 2, "NIC003"),
        ((BOND.format(1, "down, disabling slave") + BOND.format(9, "up")) * 2, "NIC003"),
        (FLAP.format("46:52", "DOWN") + FLAP.format("47:04", "INIT") + FLAP.format("47:04", "ACTIVE"), "NIC003"),
        (DOWNS, "NIC003"),
        ("bnxt_en 0000:c1:00.0 enp193s0f0np0: Error (timeout: 500015) msg {0x23 0xa1} len:0\n", "NIC003"),
        ("irdma 0000:17:00.1: CQP timeout, requesting PF reset\n", "NIC003"),
        ("hns3 0000:bd:00.0: failed to reset, firmware not responding\n", "NIC003"),
        (states(4, 11), "NIC001"),
        ("mlx5_core 0000:9a:00.0: Unable to change power state from D3cold to D0, device inaccessible\n", "NIC001"),
        (PMON + "    2     118330     C     44     19      -      -    blender\n", "JOB004"),
        ("    os.posix_fallocate(self._fd, 0, size)\nOSError: [Errno 28] No space left on device\n", "HST001"),
        ("bnxt_en 0000:45:00.0 ens4f0np0: Firmware reset aborted, first_fail\n", "NIC003"),
        (DMAR, "PCI004"),
        ((SWP.format("08", "down") + SWP.format("20", "up")) * 2, "NIC003"),
        (RATES.format(*[200] * 6, 100, 200), "NIC002"),
        ("Program terminated with signal SIGSEGV, Segmentation fault.\n#0 0x7 in ?? () from libnccl.so.2\n", "JOB009"),
        ("2025-05-06T02:11:33 | ConnectX-7 mezzanine | Device not detected | Critical\n", "NIC005"),
    ],
)  # fmt: skip
def test_the_fault_comes_first(tmp_path: Path, text: str, first: str) -> None:
    answer = said(tmp_path, text)
    assert [finding["id"] for finding in answer["findings"]][:1] == [first]
    assert answer["verdict"]["state"] != "healthy"


@pytest.mark.parametrize(
    "text",
    [
        "GPU2    pcie_width    x16   x16    PASS\n",
        "pcie_width: 0 failed, 16 passed\n",
        "tests/test_pcie_width.py::test_a FAILED [ 50%]\n",
        "GPU 6 trained at PCIe Gen5 x16 while all other GPUs are at Gen5.\n",
        WIDTH.format("Healthy"),
        SEL.format("Deasserted"),
        "acs check: ACS is disabled on all bridges\n",
        "If ACS is enabled on a bridge, peer traffic goes through the root.\n",
        SICHEK.format("normal", "PCIeACSNotClosed"),
        "iommu check: IOMMU is enabled in passthrough mode (iommu=pt)\n",
        "This is a guest: the host keeps ACS enabled for isolation.\n",
        "  nvidia            loaded\n  nvidia_peermem    loaded\n",
        "If registration of memory fails with Bad address, load nvidia_peermem.\n",
        "Couldn't allocate MR\n",  # a buffer of the host: nobody says why
        "Exit code 137 means that the container was OOMKilled.\n",
        'If ibv_reg_mr fails with "Cannot allocate memory", raise the memlock limit.\n',
        "MEMLOCK  max locked-in-memory address space     unlimited unlimited bytes\n",
        PROCESSES,
        ARISTA.format(9, "up"),
        "leaf3 %ETHPORT-5-IF_DOWN_ADMIN_DOWN: Interface Ethernet1/30 is down (Administratively down)\n",
        NETWORKD.format("Lost") + NETWORKD.format("Gained"),  # one restart of the network
        FLAP.format("47:04", "ACTIVE"),
        DOWNS.replace("41", "1"),
        states(),
        states(*range(8, 16)),  # second ports
        "ens3np0   UP  400000Mb/s, expected 400000Mb/s\n",
        "the adapter supports up to 400G and the expected 200G\n",
        SPEEDS.format(*[400000] * 4),
        SPEEDS.format(400000, 100000, 25000, 100000),  # a machine of several kinds
        PMON,
        "* port is down: reseat the cable\n* `GPU is lost`: reboot the node\n",
        "on_failure:\n  ib_port_state: FAILED\n",
        DMAR.splitlines()[0] + "\n",  # a device of unknown kind
        RATES.format(*[200] * 8),
        REDFISH.format("OK"),
        POWER + IBSTAT.format("Active", 200),
        "A NIC that is down counts as present.\n",
        "GPUDirect RDMA needs nvidia_peermem or DMA-BUF. When neither is found NCCL goes through the host.\n",
        "release 2.4: port down is retried three times\n",
        MODULES.format("loaded"),
        BER.format("1e-15", "below"),
        "Q: my port is down, what should I do?\n",
        "OOM killer test: container was OOMKilled as expected\n",
        "0 of 8 HCAs are missing\n",
        "- Fixed: GPU 3 is lost was reported for MIG devices\n",
        '{"job": "build", "status": "failed", "steps": [{"name": "lint", "status": "failed"}]}\n',
    ],
)
def test_the_same_words_without_a_fault_accuse_nobody(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []
