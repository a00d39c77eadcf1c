"""What to do about an error of NCCL, by its words and its place, else by its kind."""

from __future__ import annotations

import re

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

BY_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"ibv_modify_qp failed"), _QUEUE_PAIR),
    # Types of src/include/socket.h: 3 NET/Socket, 4 NET/IB. They meet where one side found no RDMA device.
    (re.compile(r"wrong type (?:3 != 4|4 != 3)\b"), _OTHER_NETWORK),
    (
        re.compile(r"\bdev/shm|shared memory segment|posix_fallocate|No space left on device"),
        "a larger /dev/shm: `docker run --shm-size=8g` or `--ipc=host`, in Kubernetes an emptyDir of medium Memory",
    ),
    (
        re.compile(r"ibv_reg_mr\w* .*(?:Cannot allocate memory|ENOMEM)"),
        "allow locked memory: `ulimit -l unlimited` in the job's container and in the launcher's daemon",
    ),
    (
        re.compile(r"Cuda failure .{0,12}'out of memory'|Failed to CUDA \w{1,20}alloc"),
        "leave GPU memory to NCCL: a lower share for the framework's allocator, fewer channels (NCCL_MAX_NCHANNELS),"
        " fewer communicators",
    ),
    (
        re.compile(r"illegal memory access|misaligned address|device-side assert"),
        "a kernel of the application failed before NCCL met it: CUDA_LAUNCH_BLOCKING=1, compute-sanitizer",
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
_FABRIC = (
    "is Fabric Manager running and the fabric ready on this node? `nvidia-smi -q | grep -A4 Fabric` (NVL005);"
    " NCCL_NVLS_ENABLE=0 tells whether NVLink SHARP is all that fails"
)


def advice(event: Event) -> str:
    """The first thing to do about this error."""
    for pattern, words in BY_WORDS:
        if pattern.search(event.text):
            return words
    # Multicast objects need the fabric's routes: creating or binding one fails first where they are missing.
    if event.kind == "cuda" and "nvls" in event.place:
        return _FABRIC
    return BY_KIND.get(event.kind, "mend what the message names; the later errors follow from it")
