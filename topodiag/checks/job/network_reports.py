"""Sentences of others that NET008 answers for: partitions, GIDs, queue pairs and the subnet manager."""

from __future__ import annotations

from topodiag.checks.shared.reports import Report

OF_CONNECTIONS = (
    Report("network.pkey", "a port is not a member of the partition in use",
           "the partition's key in each port's table",
           "`cat /sys/class/infiniband/DEVICE/ports/1/pkeys/*` on both nodes beside partitions.conf of opensm",
           "queue pairs of that port do not connect"),
    Report("network.gid", "the GID of a port is not at the index in use",
           "RoCE v2 with a routable address at that index",
           "`show_gids` on both nodes: NCCL_IB_GID_INDEX unset lets NCCL 2.21 and later choose",
           "queue pairs of that port do not connect, or time out"),
    Report("rdma.qp_refused", "a queue pair is refused by the adapter", "queue pairs that come to RTR and RTS",
           "`show_gids`, pkeys and active MTU of both ends: an index that is empty, or a larger MTU, is refused so",
           "queue pairs of that port do not connect"),
    Report("fabric.subnet_event", "the subnet manager told its ports something", "no such event while a job runs",
           "the log of opensm at that time: which connections lived through it?",
           "none by itself; with errors of connections it shows when the fabric changed", passing=True),
    Report("fabric.subnet_manager", "the subnet manager does not answer, or another one took over",
           "one master subnet manager",
           "`sminfo` and `ibstat | grep SM` on the node; the log of opensm at that time",
           "ports get no address, or connections break when addresses change"),
)  # fmt: skip

__all__ = ["OF_CONNECTIONS"]
