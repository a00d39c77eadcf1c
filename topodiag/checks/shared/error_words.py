"""What to do about an error by its words, whoever prints it: NCCL, CUDA, nccl-tests, a launcher."""

from __future__ import annotations

import re

from topodiag.lazy import regex

_QUEUE_PAIR = (
    "the NIC does not reach its peer: on RoCE the GID index (NCCL_IB_GID_INDEX), VLAN and routes of the GID's address;"
    " where only NICs of one rail reach each other, NCCL_CROSS_NIC=0"
)
_OTHER_NETWORK = (
    "bring all nodes to one network: `ibv_devinfo` in the job's container of each shows where RDMA is missing"
)

FABRIC = (
    "is Fabric Manager running and the fabric ready on this node? `nvidia-smi -q | grep -A4 Fabric` (NVL005); after"
    " a restart of Fabric Manager the GPUs want a reset; NCCL_NVLS_ENABLE=0 tells whether only NVLink SHARP fails"
)
_NO_PEER = (
    "GPUs of one node that cannot reach each other: in virtual machines and with IOMMU or ACS on (PCI004), or because"
    " each process sees its own GPU only (CUDA_VISIBLE_DEVICES); NCCL_P2P_DISABLE=1 tells whether it is all that fails"
)

STATUS_MEANINGS = {
    1: ("local length error", "a receive smaller than the message: NCCL versions or settings of the two sides differ"),
    4: ("local protection error", "memory registration: nvidia-peermem or DMA-BUF, driver and RDMA stack of one build"),
    5: ("flushed", "follows another error: look for the first one, on the peer too"),
    9: ("remote invalid request", "different NCCL versions or settings on the two sides"),
    10: ("remote access error", "memory that the peer took back: a process that died first, or its registration"),
    11: ("remote operation error", "the peer's device failed: its dmesg and its own log"),
    12: ("transport retries exceeded", "no acknowledgement from the peer: cable, port, switch, or routes; on RoCE also"
         " the GID index, VLAN, PFC and ECN; else NCCL_IB_TIMEOUT=22 and NCCL_IB_RETRY_CNT=7"),
    13: ("receiver not ready", "the peer posted no receive: it hangs or died; then its log comes first"),
}  # fmt: skip
"""enum ibv_wc_status of rdma-core (libibverbs/verbs.h), and where to look first."""

BY_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        regex(r"gaierror|gai error|[Nn]ame or service not known|name resolution"),
        "give MASTER_ADDR a name that every node resolves (`getent hosts NAME` there, in the container), or an address;"
        " in Kubernetes the headless service has no name before its pod is ready",
    ),
    (
        regex(r"EADDRINUSE|[Aa]ddress already in use"),
        "another process has the port: an earlier run that still lives, or two jobs of one node with one MASTER_PORT"
        " (`ss -ltnp` on the node of rank 0 names it)",
    ),
    (
        regex(r"client socket has (?:timed out|failed)|RendezvousTimeout"),
        "look on the node of rank 0 whether its process lives and listens at MASTER_ADDR:MASTER_PORT (`ss -ltn`): if it"
        " ended, its own log has the cause; else routes and firewall between the two nodes",
    ),
    (
        regex(r"[Hh]eartbeat monitor timed out"),
        "the watchdog's own thread is stuck, mostly behind Python's lock or in CUDA: the stack of the process (`py-spy"
        " dump --native --pid PID`), or TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC longer where start-up takes so long",
    ),
    (regex(r"ibv_modify_qp failed"), _QUEUE_PAIR),
    (regex(r"NVLink SHARP \(NVLS\)|system not yet initialized"), FABRIC),
    (
        regex(r"has already checked in"),
        "two processes came with one rank: compare RANK and WORLD_SIZE of all processes; the launcher ran twice, or the"
        " scheduler starts more tasks than it was told of",
    ),
    (
        regex(r"no socket interface found|is neither AF_INET"),
        "NCCL_SOCKET_IFNAME names no interface of this node, or none has an address: `ip -brief addr` there, in the"
        " container",
    ),
    (
        regex(r"attaching to shared memory|failed to open /dev/shm"),
        "the ranks of this node have /dev/shm each to itself: one IPC namespace for their containers (`--ipc=host`, one"
        " emptyDir), or NCCL_SHM_DISABLE=1",
    ),
    (
        regex(r"peer mapping resources exhausted"),
        "CUDA maps at most 8 peers of a GPU without NVSwitch: run with 8 GPUs (CUDA_VISIBLE_DEVICES), or"
        " NCCL_CUMEM_ENABLE=0, or NCCL_P2P_DISABLE=1",
    ),
    (regex(r"peer access is not supported|CUDA IPC handle|IpcGetMemHandle|IpcOpenMemHandle"), _NO_PEER),
    (
        regex(r"Cuda failure .{0,12}'initialization error'"),
        "CUDA was up before the process was forked: start workers with spawn, and ask CUDA nothing before; else"
        " `nvidia-smi` on the node",
    ),
    (
        regex(r"XML Import Channel"),
        "NCCL_GRAPH_FILE holds rings for other GPUs than this job's: unset it, in /etc/nccl.conf and ~/.nccl.conf too",
    ),
    (
        regex(r"Error: network \S{1,60} not found"),
        "NCCL_NET asks for a network whose plugin did not load: `grep NET/Plugin` in the log says why (a library or a"
        " glibc that is missing in the container), `ldd` on the plugin",
    ),
    (
        regex(r"named symbol not found|no kernel image is available|device kernel image is invalid"),
        "this build of NCCL has no kernels for this GPU, or not for this driver: a newer NCCL, and"
        " `nvidia-smi --query-gpu=compute_cap,driver_version --format=csv`",
    ),
    (
        regex(r"MNNVL \(cliqueSize"),
        "NVLink between nodes needs IMEX: `nvidia-imex-ctl -N` on the nodes, and /dev/nvidia-caps-imex-channels in the"
        " container; NCCL_MNNVL_ENABLE=0 goes without (NVL005)",
    ),
    (
        regex(r"ibv_reg_dmabuf_mr"),
        "NCCL_DMABUF_ENABLE=0 with nvidia-peermem loaded, or an RDMA stack and a driver that know DMA-BUF",
    ),
    # Types of src/include/socket.h: 3 NET/Socket, 4 NET/IB. They meet where one side found no RDMA device.
    (regex(r"wrong type (?:3 != 4|4 != 3)\b"), _OTHER_NETWORK),
    (
        regex(r"\bdev/shm|shared memory segment|posix_fallocate|No space left on device"),
        "a larger /dev/shm: `docker run --shm-size=8g` or `--ipc=host`, in Kubernetes an emptyDir of medium Memory",
    ),
    (
        regex(
            r"ibv_(?:reg_mr|create_cq|create_qp|alloc_pd)\w{0,20} failed"
            r"(?:$|.{0,120}(?:Cannot allocate memory|ENOMEM|error -12))"
        ),
        "allow locked memory: `ulimit -l unlimited` in the job's container and in the launcher's daemon",
    ),
    (
        regex(r"Cuda failure .{0,12}'out of memory'|Failed to CUDA \w{1,20}alloc"),
        "leave GPU memory to NCCL: a lower share for the framework's allocator, fewer channels (NCCL_MAX_NCHANNELS),"
        " fewer communicators",
    ),
    (
        regex(r"illegal memory access|misaligned address|device-side assert"),
        "a kernel failed before NCCL met it, mostly one of the application: CUDA_LAUNCH_BLOCKING=1, compute-sanitizer;"
        " where nccl-tests fail as well, a newer NCCL",
    ),
    (
        regex(r"Could not find real path of /sys/class/pci_bus"),
        "show the container the whole /sys; a topology file needs the bus ids of this very machine (TOP003)",
    ),
    (
        regex(r"driver version is insufficient|CUDA Driver version found|not supported in the installed CUDA driver"),
        "a driver for this CUDA on the node, or a container built for the driver's CUDA: `nvidia-smi`",
    ),
)


def advice_by_words(text: str) -> str:
    """The first thing to do about an error with these words, "" where they say nothing by themselves."""
    return next((words for pattern, words in BY_WORDS if pattern.search(text)), "")
