"""One line of a cause gives its finding in the words of any tool or version, and its healthy neighbours give none.

Texts of `fixtures/field` show a cause in the words of one thread. These are other words for the same: nobody's text.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from topodiag.api import diagnose

TID = "[Mar 21 2025 20:45:38] [{}] [tid 39] {}\n"
AMD = "[ 1200.500000] amdgpu 0000:0c:00.0: {}\n"

SHOWN = [
    ("a heap that glibc finds broken", "malloc(): invalid size (unsorted)\n", "JOB009"),
    ("a stack that glibc finds broken", "*** stack smashing detected ***: terminated\n", "JOB009"),
    ("a free of what was free, by rank", "[rank3]: double free or corruption (!prev)\n", "JOB009"),
    ("libfabric's own line", "n1: libfabric:81:1701::efa:cq:efa_rdm_cq_handle_error():112<warn> err: 5, message:"
     " Unresponsive receiver (12)\n", "NET008"),
    ("the plugin without a request", "w0:77:190 [3] process_err_completion:1723 NCCL WARN NET/OFI Operation with NULL"
     " context completed with error!\n", "NET008"),
    ("a queue pair by perftest", "Failed to modify QP 4711 to RTR, reason: Connection timed out\n", "NET008"),
    ("a queue pair by UCX", "[17.1] [n1:22:0] ib_iface.c:900 UCX  ERROR ibv_modify_qp(qp=0x55, RTR) failed: Invalid"
     " argument\n", "NET008"),
    ("a queue pair by psm3", "[17.2] n7:rank7.python: Failed to modify UD QP to INIT on mlx5_2: Operation not"
     " permitted\n", "NET008"),
    ("AMD's memory", AMD.format("amdgpu: 4 uncorrectable hardware errors detected in umc block"), "GPU003"),
    ("AMD's queue", AMD.format("ring sdma0 timeout, signaled seq=3, emitted seq=5"), "GPU003"),
    ("AMD's reset alone", AMD.format("GPU reset begin!. Source:  1"), "GPU003"),
    ("AMD's hardware error by name", AMD.format("uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!"),
     "GPU003"),
    ("AMD's GPU that does not start", AMD.format("amdgpu: Fatal error during GPU init"), "GPU003"),
    ("Gloo without such an interface", "[rank1]: RuntimeError: [enforce fail at gloo/transport/tcp/device.cc:84] ifa"
     " != nullptr. Unable to find address for: ib7\n", "NET002"),
    ("Gloo over loopback for two nodes", "RuntimeError: Gloo connectFullMesh failed with [/x/gloo/pair.cc:152] timed"
     " out connecting: SO_ERROR: Connection refused, remote=[127.0.1.1]:2611 (rank=8, size=16, local=[127.0.1.1])\n",
     "NET002"),
    ("perftest without a device", " Did not detect devices \n Unable to find the Infiniband/RoCE device\n", "HST002"),
    ("ibstatus without a device", "Fatal error:  device '*': sys files not found (/sys/class/infiniband/*/ports)\n",
     "HST002"),
    ("a device node that may not be opened", "failed to open /dev/infiniband/uverbs0: Permission denied\n", "HST002"),
    ("a container without the device nodes", "ls: cannot access '/dev/infiniband': No such file or directory\n",
     "HST002"),
    ("UCX that cannot resolve the peer", "[17.1] [n1:22:0] ib_device.c:1234 UCX  ERROR ibv_create_ah(dlid=49152 sl=0"
     " port=1 dgid=::ffff:10.2.0.9) for RC mlx5 connect on mlx5_0 failed: Connection timed out\n", "NET008"),
    ("fi_info that finds no provider", "$ fi_info -p efa\nfi_getinfo: -61 (No data available)\n", "HST002"),
    ("Open MPI that cannot open a peer's memory", "The call to cuIpcOpenMemHandle failed. This is an unrecoverable"
     " error\n", "HST002"),
    ("Cray MPICH that cannot either", "(GTL DEBUG: 1) cuIpcOpenMemHandle: invalid argument, CUDA_ERROR_INVALID_VALUE,"
     " line no 360\n", "HST002"),
    ("a node that mpirun does not know", "ssh: Could not resolve hostname mpi-worker-0.mpi: Name or service not"
     " known\n", "JOB009"),
    ("a node that refuses mpirun", "root@mpi-worker-1.mpi: Permission denied (publickey,password).\nORTE was unable to"
     " reliably start one or more daemons.\n", "JOB009"),
    ("JAX's tasks that do not register", "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id:"
     " [Init]Wait_for_all_tasks_to_register::0. This usually happens\n", "JOB001"),
    ("NCCL's shared memory that somebody removed", "c:7:8 [2] include/shm.h:48 NCCL WARN unlink shared memory"
     " /dev/shm/nccl-d5rT failed, error: No such file or directory\nc:7:8 [2] NCCL INFO init.cc:743 -> 2\n", "HST003"),
    ("the plugin's protocol that fails", "w0:77:77 [0] init.c:7 NCCL WARN NET/OFI Failed to initialize rdma protocol\n"
     "w0:77:77 [0] NCCL INFO NET/Socket : Using [0]ens32:10.2.7.4<0>\nw0:77:77 [0] NCCL INFO Using network Socket\n",
     "NET005"),
    ("the Fabric Manager's own log", TID.format("ERROR", "failed to initialize NVSwitch driver interface: aborting"),
     "NVL005"),
    ("IMEX' own log", TID.format("INFO", "IMEX version 570.00 is running") + TID.format("ERROR", "Failed to bind"),
     "NVL005"),
    ("a completion whose peer is left out", "NET/IB : Got completion from peer with error 12, opcode 0,"
     " vendor err 129\n", "NET008"),
    ("HCCL's own log", "[ERROR] HCCL(80812,):2026-06-17-02:21:43.8 [transport_manager.cc:954] [86231]Transport"
     " init error! createLink para:rank[7]\n", "JOB005"),
    ("HCCL's code by a rank", "[rank1]: EI0009: [PID: 222] 2025-09-24 Transport init error. Reason: Create Dest"
     " error\n", "JOB005"),
    ("oneCCL's log", "2025:05:23-19:04:20:(168955) |CCL_ERROR| atl_ofi_helper.cpp:1635 atl_ofi_open_nw_provs: can not"
     " open network providers\n", "JOB005"),
    ("the device plug-in's lost GPU", "2023/08/10 19:09:42 XidCriticalError: Xid=79 on Device=GPU-7540a9b3, the device"
     " will go unhealthy.\n", "GPU001"),
    ("nvidia-smi's own words of a mismatch", "Failed to initialize NVML: Driver/library version mismatch\nNVML library"
     " version: 570.86\n", "HST004"),
    ("CUDA's words of a mismatch", "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has"
     " unsupported display driver / cuda driver combination\n", "HST004"),
    ("CUDA asked by torch", "RuntimeError: CUDA error: peer access is not supported between these two"
     " devices\n", "JOB005"),
]  # fmt: skip

SILENT = [
    ("a request that completed", "a:57:130 [0] NCCL INFO NET/OFI Request completed in 12 us\n"),
    ("words that only look like errors", "a:5:9 [0] NCCL INFO NET/IB: connection times out after 20 tries\n"
     "2025:05:23-19:04:20:(16) |CCL_WARN| did not find MPI-launcher specific variables, switch to ATL/OFI\n"),
    ("AMD's start", AMD.format("amdgpu: ring comp_1.1.1 uses VM inv eng 9 on hub 0")
     + AMD.format("amdgpu: RAS: optional ras ta ucode is not available")),
    ("AMD's GPU that started", AMD.format("amdgpu: uses VM inv eng 0") + AMD.format("[drm] initialized for GPU init")),
    ("RCCL's word of the IOMMU in a job that came up", 'w0:77:77 [0] init.cc:9 NCCL WARN Missing "iommu=pt" from kernel'
     " command line which can lead to system instablity or hang!\nw0:77:80 [0] NCCL INFO ncclCommInitRank comm 0x7f2c"
     " rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 100000 commId 0x2c1d - Init COMPLETE\n"),
    ("NCCL without an RDMA device", "w0:77:77 [0] NCCL INFO NET/IB : No device found.\n"),
    ("words on a device node, and one that opens", "# /dev/infiniband/uverbs0: Permission denied? See `ulimit`\n"
     "what does `/dev/infiniband/uverbs0: Permission denied` mean?\nopened /dev/infiniband/uverbs0: ok\n"
     "crw-rw-rw- 1 root root 231, 192 May  2 10:11 /dev/infiniband/uverbs0\n"
     "w0:77:77 [0] NCCL INFO Using network IB\n"),
    ("a library that asks for providers", "libfabric:81:core:core:fi_getinfo_():1201<info> Found provider efa\n"
     "w0:77:77 [0] NCCL INFO Using network Socket\n"),
    ("perftest that found its device", "                    RDMA_Write BW Test\n Device         : mlx5_0\n"
     " 65536      1000             185.37             184.94              0.352\n"),
    ("vLLM's own all-reduce that is off", "WARNING 06-30 10:02:43 [custom_all_reduce.py:144] Custom allreduce is"
     " disabled because your platform lacks GPU P2P capability or P2P test failed.\n"),
    ("Open MPI's component without an adapter", "[[46667,1],2]: A high-performance Open MPI point-to-point messaging"
     " module\nwas unable to find any relevant network interfaces:\n\nModule: OpenFabrics (openib)\n"),
    ("ssh that adds a host", "Warning: Permanently added '[mpi-worker-0.mpi]:2222' (ED25519) to the list of known"
     " hosts.\nw0:77:77 [0] NCCL INFO Bootstrap : Using eth0:10.2.7.4<0>\n"),
    ("a Fabric Manager that runs", TID.format("INFO", "Fabric Manager version 570.124.06 is running")
     + TID.format("INFO", "Successfully configured all the available NVSwitches to route GPU NVLink traffic.")),
    ("IMEX that stands, and lost a peer", TID.format("INFO", "IMEX version 570.00 is running")
     + TID.format("INFO", "Identified this node as ID 0") + TID.format("ERROR", "Connection to node 1 lost")),
]  # fmt: skip


def told(text: str, folder: Path) -> list[str]:
    """Ids of what calls something faulty, in order."""
    (folder / "text.log").write_text(text)
    return [finding.id for finding in diagnose(str(folder)).findings if finding.severity.name != "INFO"]


@pytest.mark.parametrize(("text", "wanted"), [row[1:] for row in SHOWN], ids=[row[0] for row in SHOWN])
def test_a_cause_is_told_first_in_other_words(text: str, wanted: str, tmp_path: Path) -> None:
    assert told(text, tmp_path)[:1] == [wanted]


@pytest.mark.parametrize("text", [pair[1] for pair in SILENT], ids=[pair[0] for pair in SILENT])
def test_what_only_looks_alike_is_not_told(text: str, tmp_path: Path) -> None:
    assert told(text, tmp_path) == []
