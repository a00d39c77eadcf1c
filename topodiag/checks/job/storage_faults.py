"""HST006 by a job's output: what a program is told when its storage takes no more, or does not answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from topodiag.checks.job.device_faults import FaultInLog, Named, Words
from topodiag.model.finding import Confidence, Outcome
from topodiag.model.job import Job

_ENDS = "the rank that writes ends or waits, and all others wait for it in the next collective"


class StorageInLog(FaultInLog):
    """HST006 by a job's output: a file system is full, over its quota, read-only, or its server is gone."""

    id = "HST006"
    title = "the storage of a job refuses its writes or does not answer"
    words: ClassVar[Mapping[str, Words]] = {
        "disk full": Words(
            "a file system is full: the job cannot write",
            "room for what the job writes",
            ("`df -h PATH` and `df -i PATH` of the path that the line names, on the node: space or inodes are used up",
             "keep fewer checkpoints, or write them elsewhere; caches and /tmp of earlier jobs fill local disks"),
            _ENDS,
        ),
        "unwritten": Words(
            "a checkpoint could not be written: torch does not say why, mostly the file system is full",
            "room, and leave to write, where the job keeps its checkpoints",
            ("`df -h PATH`, `df -i PATH` and the quota of the directory that the job writes to, on the node",
             "`dmesg -T | tail` there: errors of the disk, or a server that does not answer"),
            _ENDS,
            Confidence.MEDIUM,
        ),
        "io error": Words(
            "a file system answers with an error of input or output",
            "storage that reads and writes what it is asked",
            ("`dmesg -T | tail -50` on the node: errors of the disk, a server that is lost, a client that was evicted",
             "the same file from another node: is it the file's server, or this node's client"),
            _ENDS,
        ),
        "quota": Words(
            "a quota is used up: the job cannot write",
            "room within the quota for what the job writes",
            ("`quota -s` or `lfs quota -u $USER PATH`: space or number of files",
             "keep fewer checkpoints, or ask for more"),
            _ENDS,
        ),
        "read-only": Words(
            "a file system is read-only: the job cannot write",
            "a file system that may be written",
            ("`mount | grep ' ro'` and `dmesg | grep -i remount` on the node: the kernel turns a file system read-only"
             " after errors of its disk",
             "in containers: is the path a volume that is mounted for reading"),
            _ENDS,
        ),
        "stale file": Words(
            "a file on shared storage is gone for this node (stale handle)",
            "storage that holds the files which the job has open",
            ("who removed or moved the directory while the job ran: another job, a clean-up, a fail-over of the server",
             "mount the storage anew on this node"),
            _ENDS,
        ),
    }  # fmt: skip

    def observe(self, judged: Job, peers: Sequence[Job]) -> Named | Outcome:
        named = super().observe(judged, peers)
        shared = any(event.details.get("fault") == "shm" for event in judged.events)
        if shared and isinstance(named, Named) and named.fault == "disk full":
            return self.not_applicable(judged, "shared memory is what is full: HST001 says so")
        return named
