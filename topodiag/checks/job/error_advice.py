"""What to do about an error of NCCL, by its words and its place, else by its kind."""

from __future__ import annotations

import re

from topodiag.checks.job.network_errors import MEANINGS
from topodiag.model.job import Event

BY_KIND = {
    "ib completion": "check the port, cable and switch port of the NIC named, and the peer: ibstat, perfquery, dmesg",
    "port": "check cable and switch port of the NIC named: ibstat, mlxlink, dmesg",
    "ib async": "check cable and switch port of the NIC named: ibstat, mlxlink, dmesg",
    "cuda": "look for Xid lines in dmesg of this node, and at the rank's own traceback",
    "memory": "free memory for NCCL's buffers: a larger /dev/shm, fewer channels, less reserved by the framework",
    "bootstrap": "name the interface that all nodes share: NCCL_SOCKET_IFNAME",
    "version": "start the same libnccl on all ranks",
    "duplicate gpu": "set the CUDA device from the local rank before init",
    "connect": "check routes and firewall between the two nodes, and NCCL_SOCKET_IFNAME",
    "mismatch": "compare settings and operations of the ranks: JOB003, JOB006",
    "watchdog": "see who is behind: JOB006; py-spy on the ranks that wait",
    "timeout": "see who is behind: JOB006; py-spy on the ranks that wait",
}

_QUEUE_PAIR = (
    "the NIC does not reach its peer: on RoCE the GID index (NCCL_IB_GID_INDEX), VLAN and routes of the GID's address;"
    " where only NICs of one rail reach each other, NCCL_CROSS_NIC=0"
)
_OTHER_NETWORK = (
    "bring all nodes to one network: `ibv_devinfo` in the job's container of each; or NCCL_IB_DISABLE=1 on all of them"
)

_FABRIC = (
    "is Fabric Manager running and the fabric ready on this node? `nvidia-smi -q | grep -A4 Fabric` (NVL005); after"
    " a restart of Fabric Manager the GPUs want a reset; NCCL_NVLS_ENABLE=0 tells whether only NVLink SHARP fails"
)
_NO_PEER = (
    "GPUs of one node that cannot reach each other: in virtual machines and with IOMMU or ACS on (PCI004), or because"
    " each process sees its own GPU only (CUDA_VISIBLE_DEVICES); NCCL_P2P_DISABLE=1 tells whether it is all that fails"
)

BY_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"ibv_modify_qp failed"), _QUEUE_PAIR),
    (re.compile(r"NVLink SHARP \(NVLS\)|system not yet initialized"), _FABRIC),
    (
        re.compile(r"has already checked in"),
        "two processes came with one rank: compare RANK and WORLD_SIZE of all processes; the launcher ran twice, or the"
        " scheduler starts more tasks than it was told of",
    ),
    (
        re.compile(r"no socket interface found|is neither AF_INET"),
        "NCCL_SOCKET_IFNAME names no interface of this node, or none has an address: `ip -brief addr` there, in the"
        " container",
    ),
    (
        re.compile(r"attaching to shared memory|failed to open /dev/shm"),
        "the ranks of this node have /dev/shm each to itself: one IPC namespace for their containers (`--ipc=host`, one"
        " emptyDir), or NCCL_SHM_DISABLE=1",
    ),
    (
        re.compile(r"peer mapping resources exhausted"),
        "CUDA maps at most 8 peers of a GPU without NVSwitch: run with 8 GPUs (CUDA_VISIBLE_DEVICES), or"
        " NCCL_CUMEM_ENABLE=0, or NCCL_P2P_DISABLE=1",
    ),
    (re.compile(r"peer access is not supported|CUDA IPC handle|IpcGetMemHandle|IpcOpenMemHandle"), _NO_PEER),
    (
        re.compile(r"Cuda failure .{0,12}'initialization error'"),
        "CUDA was up before the process was forked: start workers with spawn, and ask CUDA nothing before; else"
        " `nvidia-smi` on the node",
    ),
    (
        re.compile(r"XML Import Channel"),
        "NCCL_GRAPH_FILE holds rings for other GPUs than this job's: unset it, in /etc/nccl.conf and ~/.nccl.conf too",
    ),
    (
        re.compile(r"Error: network \S{1,60} not found"),
        "NCCL_NET asks for a network whose plugin did not load: `grep NET/Plugin` in the log says why (a library or a"
        " glibc that is missing in the container), `ldd` on the plugin",
    ),
    (
        re.compile(r"named symbol not found|no kernel image is available|device kernel image is invalid"),
        "this build of NCCL has no kernels for this GPU, or not for this driver: a newer NCCL, and"
        " `nvidia-smi --query-gpu=compute_cap,driver_version --format=csv`",
    ),
    (
        re.compile(r"MNNVL \(cliqueSize"),
        "NVLink between nodes needs IMEX: `nvidia-imex-ctl -N` on the nodes, and /dev/nvidia-caps-imex-channels in the"
        " container; NCCL_MNNVL_ENABLE=0 goes without (NVL005)",
    ),
    (
        re.compile(r"ibv_reg_dmabuf_mr"),
        "NCCL_DMABUF_ENABLE=0 with nvidia-peermem loaded, or an RDMA stack and a driver that know DMA-BUF",
    ),
    # Types of src/include/socket.h: 3 NET/Socket, 4 NET/IB. They meet where one side found no RDMA device.
    (re.compile(r"wrong type (?:3 != 4|4 != 3)\b"), _OTHER_NETWORK),
    (
        re.compile(r"\bdev/shm|shared memory segment|posix_fallocate|No space left on device"),
        "a larger /dev/shm: `docker run --shm-size=8g` or `--ipc=host`, in Kubernetes an emptyDir of medium Memory",
    ),
    (
        re.compile(
            r"ibv_(?:reg_mr|create_cq|create_qp|alloc_pd)\w{0,20} failed"
            r"(?:$|.{0,120}(?:Cannot allocate memory|ENOMEM|error -12))"
        ),
        "allow locked memory: `ulimit -l unlimited` in the job's container and in the launcher's daemon",
    ),
    (
        re.compile(r"Cuda failure .{0,12}'out of memory'|Failed to CUDA \w{1,20}alloc"),
        "leave GPU memory to NCCL: a lower share for the framework's allocator, fewer channels (NCCL_MAX_NCHANNELS),"
        " fewer communicators",
    ),
    (
        re.compile(r"illegal memory access|misaligned address|device-side assert"),
        "a kernel failed before NCCL met it, mostly one of the application: CUDA_LAUNCH_BLOCKING=1, compute-sanitizer;"
        " where nccl-tests fail as well, a newer NCCL",
    ),
    (
        re.compile(r"Could not find real path of /sys/class/pci_bus"),
        "show the container the whole /sys; a topology file needs the bus ids of this very machine (TOP003)",
    ),
    (
        re.compile(r"driver version is insufficient|CUDA Driver version found"),
        "a driver for this CUDA on the node, or a container built for the driver's CUDA: `nvidia-smi`",
    ),
)


def advice(event: Event) -> str:
    """The first thing to do about this error."""
    for pattern, words in BY_WORDS:
        if pattern.search(event.text):
            return words
    # What a completion means is in its status; the cable is for those that got no answer.
    status = event.details.get("status", "")
    if event.kind == "ib completion" and status.isdecimal() and status != "12" and int(status) in MEANINGS:
        return MEANINGS[int(status)][1]
    if event.kind == "cuda" and "shmutils" in event.place:
        return (
            "CUDA cannot map the shared memory segment: size and limits of the container's /dev/shm; NCCL_SHM_DISABLE=1"
        )
    # Multicast objects need the fabric's routes: creating or binding one fails first where they are missing.
    if event.kind == "cuda" and "nvls" in event.place:
        return _FABRIC
    return BY_KIND.get(event.kind, "mend what the message names; the later errors follow from it")
