"""What people paste when they ask: some lines of one tool, without anything around them. The fault that stands in them
comes first, and nobody calls such a text healthy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import said
from topodiag.model.errors import TopodiagError

AER = "nvidia 0000:9a:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)\n"
FABRIC = """    Fabric
        State                             : {}
        Status                            : {}
        CliqueId                          : 0
"""
ECC = """    ECC Errors
        Volatile
            SRAM Correctable              : 0
            SRAM Uncorrectable Parity     : 0
            SRAM Uncorrectable SEC-DED    : 0
            DRAM Correctable              : 0
            DRAM Uncorrectable            : {}
"""
LINKS = "GPUs:\n    gpuId 0:\n        U U U U U U U U U U U\n    gpuId 1:\n        U U U U U {} U U U U U\n"
COPIES = """Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1      2      3
     0 2519.12 274.55 274.60 {0}
     1 274.52 2520.11 274.61 {0}
     2 274.50 274.51 2521.40 {0}
     3 {0} {0} {0} 2519.00
"""
RAY = (
    "(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker exit type:"
    " SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.\n"
)
XLA = (
    "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: NCCL operation ncclCommInitRank(&comm, nranks, id, rank) failed:"
    " unhandled system error (run with NCCL_DEBUG=INFO for details). Last NCCL warning(error) log entry (may be"
    " unrelated) 'Call to connect to 10.0.3.4<41233> failed : Connection refused'.\n"
)
LIMITED = (
    "[    8.387840] {}: {} Gb/s available PCIe bandwidth, limited by {} GT/s PCIe x{} link at 0000:42:01.0"
    " (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)\n"
)
NARROWER = LIMITED.format("pci 0000:0b:00.0", "252.0", "16.0", 16) + LIMITED.format(
    "pci 0000:0b:00.0", "126", "16.0", 8
)
RDMA_TEST = """                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : rocep1s0f0
 Link type       : Ethernet
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      252340           0.00               {}                0.025234
"""
RATE = "# ethtool enp1s0f0np0 | grep -E 'Speed|Link detected'\n\tSpeed: 200000Mb/s\n\tLink detected: yes\n"
DCGM = """|-----  Deployment  --------+------------------------------------------------|
| Denylist                  | Pass                                           |
+-----  Hardware  ----------+------------------------------------------------+
| GPU Memory                | Fail - GPU: 0                                  |
| Warning                   | GPU 0 Thermal violations totaling 13.3 second  |
|                           | s started at 9.7 seconds into the test for GP  |
|                           | U 0 Verify that the cooling on this machine i  |
|                           | s functional.                                  |
"""
POWER = "mlx5_core 0000:01:00.0: mlx5_pcie_event:334:(pid 12): Detected insufficient power on the PCIe slot (27W).\n"
MLXLINK = "Troubleshooting Info\n--------------------\nStatus Opcode : 0\nRecommendation : {}\n"
TRAYS = """cd-a-0:112:180 [0] NCCL INFO MNNVL busId 0x901000 fabric UUID 1.2 cliqueId 0x7ffe state 3 healthMask 0x0
cd-a-0:112:204 [0] transport/p2p.cc:275 NCCL WARN Cuda failure 801 'operation not supported'
"""
KNVLINK = "Jul 09 10:42:47 n82 kernel: NVRM: knvlink{}: Failed to update the mask!\n"
ANALYZER = """Not all ranks joining collective 412 at entry 210
group info: 0:default_pg
collective: nccl:all_reduce
missing ranks: {3}
expected ranks: 8
"""


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("No devices were found\n", "GPU001"),
        ("ERROR:root:Driver not initialized (amdgpu not found in modules)\n", "GPU001"),
        (AER, "PCI003"),
        (FABRIC.format("In Progress", "N/A"), "NVL005"),
        (ECC.format(6), "GPU002"),
        (LINKS.format("D"), "NVL001"),
        (COPIES.format("137.28"), "GPU006"),
        (RAY, "JOB009"),
        ("Engine core proc EngineCore_0 died unexpectedly, shutting down executor.\n", "JOB009"),
        (XLA, "JOB005"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered\nFor debugging pass X=1\n", "JOB009"),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device\n", "JOB005"),
        ("torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 15/16 clients joined.\n",
         "JOB001"),
        ("RuntimeError: [Rank 4] Caught collective operation timeout: WorkNCCL(SeqNum=121, OpType=BROADCAST, "
         "TensorShape=[1024], Timeout(ms)=1800000) ran for 1801244 milliseconds before timing out.\n", "JOB006"),
        (ANALYZER, "JOB006"),
        ('docker: Error from daemon: could not select device driver "" with capabilities: [[gpu]].\n', "HST002"),
        ("nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown\n", "GPU001"),
        ("Failed to initialize NVML: Unknown Error\n", "HST002"),
        ("ibwarn: [1234] mad_rpc_open_port: can't open UMAD port ((null):0)\n", "HST002"),
        ("[n3:881:0] ib_device.c:1171 UCX  ERROR ibv_query_gid(dev=mlx5_0 port=1 index=3) failed: Invalid argument\n",
         "NET008"),
        ("srun: error: Task launch for StepId=11.0 failed on node gpu7: Job prolog failed\n", "JOB009"),
        ("srun: error: Node failure on gpu-3\nsrun: Job step aborted: Waiting up to 32 seconds.\n", "JOB009"),
        ("NAME      READY   STATUS             RESTARTS   AGE\nworker-0  0/1     CrashLoopBackOff   7          12m\n",
         "JOB009"),
        ("ImportError: /opt/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister\n", "JOB002"),
        ("XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. Timed out tasks: 3\n",
         "JOB001"),
        ("torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cuda//worker/ranks\n",
         "JOB001"),
        ("RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.\n",
         "JOB005"),
        ("RuntimeError: Timed out initializing process group in store based barrier on rank: 3 (world_size=4)\n",
         "JOB001"),
        ("[1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0',"
         " but store->get('0') got error: Connection reset by peer\n", "JOB005"),
        ("Memory access fault by GPU node-3 (Agent handle: 0x7f8c) on address 0x7f12. Reason: unknown.\n", "JOB009"),
        ("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n", "JOB009"),
        ("[gpu3:01231] PMIX ERROR: UNREACHABLE in file ptl_base_fns.c at line 108\n", "JOB009"),
        ("nvidia 0000:17:00.0: can't change power state from D3cold to D0 (config space inaccessible)\n", "GPU001"),
        ("pcieport 0000:15:01.0: pciehp: Slot(1): Link Down\n", "PCI003"),
        ("mlx5_core 0000:17:00.0: health_recovery_work:341: handling bad device here\n", "NIC003"),
        ("bnxt_en 0000:21:00.0 ens5f0np0: TX timeout detected, starting reset task!\n", "NIC003"),
        ("cma event RDMA_CM_EVENT_UNREACHABLE, error -110\nconnect error -1\n", "NET008"),
        (" Couldn't connect to 10.0.0.4:18515\n", "JOB005"),
        ("LustreError: 167-0: scratch-MDT0000-mdc-ff: This client was evicted by scratch-MDT0000; in progress\n",
         "HST006"),
        ("OSError: [Errno 5] Input/output error: '/mnt/data/shard-0001.tar'\n", "HST006"),
        ("RuntimeError: Timed out waiting 1800000ms for recv operation to complete\n", "JOB006"),
        ("pdsh@head: worker-3: ssh exited with exit code 255\n", "JOB009"),
        ("I 05-04 00:52:46 controller.py:100] The cluster is preempted.\n", "JOB009"),
        ("NET/FasTrak : plugin initialization failed: no devices found\n", "JOB005"),
        ("h:1:1 [0] NCCL INFO NET/IB : SHARP coll init error: Cannot connect to SHARPD(-8)\n", "NET005"),
        (LIMITED.format("mlx5_core 0001:43:00.0", "126.024", "16.0", 8), "PCI001"),
        (NARROWER, "PCI001"),
        (RATE + RDMA_TEST.format("13.23"), "BEN001"),
        (DCGM, "GPU004"),
        (POWER, "NIC003"),
        (MLXLINK.format("\x1b[31mBad signal integrity\x1b[0m"), "NIC003"),
        (TRAYS, "NVL005"),
        (KNVLINK.format("UpdatePostRxDetectLinkMask_IMPL"), "NVL001"),
        ("NODELIST   STATE  REASON\nn12        drain  GPU fell off bus\n", "GPU001"),
    ],
)  # fmt: skip
def test_the_fault_of_an_excerpt_comes_first(tmp_path: Path, text: str, first: str) -> None:
    answer = said(tmp_path, text)
    assert [finding["id"] for finding in answer["findings"]][:1] == [first]
    assert answer["verdict"]["state"] != "healthy"


@pytest.mark.parametrize(
    "text",
    [
        FABRIC.format("Completed", "Success"),
        FABRIC.format("N/A", "N/A"),
        ECC.format(0),
        LINKS.format("U"),
        LINKS.format("X"),  # switched off: no fault
        "GPUs:\n    gpuId 0:\n        U U U U\n    gpuId 1:\n        D D D D\n",  # a card without a bridge
        COPIES.format("273.90"),
        COPIES.format("22.10").replace("274.", "23."),  # over PCIe the place of a card decides
        "NODELIST  CPUS  STATE  REASON\nn[1-4]  96  idle  none\n",
        LIMITED.format("mlx5_core 0001:43:00.0", "126.024", "8.0", 16),  # a board of an older generation
        LIMITED.format("nvidia 0000:0b:00.0", "126.0", "16.0", 8)
        + LIMITED.format("nvidia 0000:0c:00.0", "126.0", "16.0", 8),
        LIMITED.format("pci 0000:0b:00.0", "31.5", "8.0", 4).replace("x16", "x8"),  # a disk
        RATE + RDMA_TEST.format("188.90"),
        RDMA_TEST.format("13.23"),  # nobody says what the port can do
        RATE + RDMA_TEST.format("13.23").replace("BW Test", "Bidirectional BW Test"),
        MLXLINK.format("No issue was observed"),
        KNVLINK.format("CoreShutdownDeviceLinks_IMPL"),
        POWER + RDMA_TEST.format("97.28"),  # it carries much all the same
    ],
)
def test_an_excerpt_without_a_fault_accuses_nobody(tmp_path: Path, text: str) -> None:
    loud = [finding for finding in said(tmp_path, text)["findings"] if finding["severity"] != "info"]
    assert loud == []


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-06 WARN fetch: ConnectionError: read timed out, trying again\n" + "2024-05-06 INFO fetch: done\n" * 20,
        "the worker may have died if this is printed\n",
        "NAME      READY   STATUS    RESTARTS   AGE\nworker-0  1/1     Running   0          12m\n",
        "no worker died\n",
        "the request failed: ValueError: bad token\n",
    ],
)
def test_exceptions_and_deaths_that_are_only_spoken_of_are_no_jobs_end(tmp_path: Path, text: str) -> None:
    try:
        answer = said(tmp_path, text)
    except TopodiagError:
        return  # of no kind that is known
    assert (answer["findings"], answer["verdict"]["state"]) == ([], "unknown")


@pytest.mark.parametrize(("signal", "word"), [(1, "terminal or session"), (2, "cancelled"), (9, "killed by signal 9")])
def test_a_launcher_that_a_signal_ended_is_no_exception_to_mend(tmp_path: Path, signal: int, word: str) -> None:
    line = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 2704315 got signal: {}\n"
    (finding,) = said(tmp_path, line.format(signal))["findings"]
    assert finding["id"] == "JOB009"
    assert word in finding["message"]


def test_an_access_that_the_iommu_refused_to_an_unknown_device_is_listed_and_not_called_healthy(tmp_path: Path) -> None:
    line = "DMAR: [DMA Read NO_PASID] Request device [5e:00.0] fault addr 0x380fff000000 [fault reason 0x06] not set\n"
    answer = said(tmp_path, line)
    assert answer["findings"] == []
    assert answer["verdict"]["state"] == "unknown"
    assert len(answer["unexplained"]) == 1


def test_memory_that_a_peer_cannot_import_is_no_fault_of_the_fabric_without_trays(tmp_path: Path) -> None:
    assert "NVL005" not in [finding["id"] for finding in said(tmp_path, TRAYS.replace("MNNVL", "NET"))["findings"]]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Settings for ens3f0np0:\n\tSpeed: Unknown!\n\tLink detected: no\n", "ens3f0np0 has no link"),
        ("Settings for ens3:\n\tSupported link modes:   200000baseCR4/Full\n\tSpeed: 50000Mb/s\n\tLink detected: yes\n",
         "ens3 runs at 50 Gb/s, and its port can do 200 Gb/s"),
    ],
)  # fmt: skip
def test_an_interface_that_is_shown_alone_is_listed_with_what_it_lacks(tmp_path: Path, text: str, word: str) -> None:
    answer = said(tmp_path, text)
    assert (answer["findings"], [each["text"] for each in answer["unexplained"]]) == ([], [word])
    assert answer["verdict"]["state"] == "unknown"


@pytest.mark.parametrize(
    "line",
    [
        "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x12 offset:0x0)\n",
        "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1: bd80000000100134\n",
        "watchdog: BUG: soft lockup - CPU#12 stuck for 22s! [python:4411]\n",
    ],
)
def test_a_fault_of_the_processor_is_listed_and_no_node_with_it_is_healthy(tmp_path: Path, line: str) -> None:
    answer = said(tmp_path, line)
    assert (answer["findings"], len(answer["unexplained"])) == ([], 1)
    assert answer["verdict"]["state"] == "unknown"
