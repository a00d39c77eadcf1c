"""What to do about an error of NCCL, by its words and its place, else by its kind."""

from __future__ import annotations

from topodiag.checks.shared.phrases import advice_by_words
from topodiag.model.job import Event
from topodiag.words.own_data import own_data

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
    "mismatch": "compare `env | grep NCCL` and the NCCL version of all ranks",
    "watchdog": "see who is behind: JOB006; py-spy on the ranks that wait",
    "timeout": "see who is behind: JOB006; py-spy on the ranks that wait",
}


def advice(event: Event) -> str:
    """The first thing to do about this error."""
    words = advice_by_words(event.text)
    if words:
        return words
    # What a completion means is in its status; the cable is for those that got no answer.
    status = event.details.get("status", "")
    if event.kind == "ib completion" and status != "12" and status in own_data("checks/shared/phrases")["completion"]:
        return str(own_data("checks/shared/phrases")["completion"][status]["fix"])
    if event.kind == "cuda" and "shmutils" in event.place:
        return (
            "CUDA cannot map the shared memory segment: size and limits of the container's /dev/shm; NCCL_SHM_DISABLE=1"
        )
    # Multicast objects need the fabric's routes: creating or binding one fails first where they are missing.
    if event.kind == "cuda" and "nvls" in event.place:
        return advice_by_words("NVLink SHARP (NVLS)")
    return BY_KIND.get(event.kind, "mend what the message names; the later errors follow from it")
