"""What a scheduler or a health check says is wrong with a node, by the part that its sentence names.

Slurm's `Reason=` is the sentence of whoever drained the node: slurmctld's own (`gres/gpu count reported lower than
configured (7 < 8)`, src/interfaces/gres.c), LBNL's Node Health Check (`NHC: check_hw_ib: No IB port mlx5_4:1 is
ACTIVE`, scripts/*.nhc), Azure's checks for it (azurehpc-health-checks), or a person's. Slurm cuts it in tables.
"""

from __future__ import annotations

import re

from topodiag.evidence.network.setup_words import setup_fault
from topodiag.model.system import OUT_OF_SERVICE, REPORTED

_XID_79 = r"\bxid\D{0,12}(?:79|143|119|120)\b"
PARTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("gpu-lost", rf"f[ae]ll(?:en|s|ing)? off (?:the )?(?:PCIe? )?bus|\bGPU\b.{{0,30}}\b(?:is )?lost\b|{_XID_79}"
                     r"|unable to determine the device handle|no devices were found"),
        ("gpu-count", r"gres/gpu.{0,30}count.{0,60}(?:lower than configured|too low)|check_(?:nv_)?gpu_count"
                      r"|\b(?:missing|lost) (?:\d{1,2} )?GPUs?\b|\bGPUs? (?:is |are )?(?:missing|not (?:found"
                      r"|detected))"
                      r"|expected (?:number of )?(?:\d{1,2} )?GPUs?\b.{0,40}\bfound\b"
                      r"|GPU count\b.{0,30}\b(?:low|mismatch|wrong)"),
        ("gpu-memory", r"\bECC\b|row[ _-]?remap|remapping|\bxid\D{0,12}(?:48|63|64|94|95)\b|(?<!GB )(?<!GB-)\bHBM"
                       r"|page retirement"),
        ("xid", r"\bxid\b|check_gpu_xid|check_xid"),
        ("nvlink", r"\bnv_?links?\b"),
        ("fabric", r"fabric ?-?manager|nvswitch|\bIMEX\b|\bfabric (?:state|health)|\broute unhealthy"),
        ("gpu-slow", r"check_gpu_bw|\b(?:[hd]2[hd]|host to device|device to host)\b.{0,40}\b(?:bandwidth|GB/s)"),
        ("gpu-clocks", r"throttl"
                       r"|\bGPU\w{0,20}\b.{0,30}\b(?:temperature|temp)\b.{0,60}\b(?:critical|too high|over)"
                       r"|check_app_gpu_clocks|power brake|thermal"),
        ("port-flap", r"link.{0,8}flap|flapping"),
        ("port-count", r"expected \d{1,2} (?:IB|HCA|NIC|RDMA)\w{0,12}\b.{0,40}found|(?:IB|HCA|NIC"
                       r"|RDMA) (?:device )?count"),
        ("port-down", r"\bNo IB port\b|check_hw_ib|check_hw_eth|Ethernet device \S{1,40} not detected"
                      r"|\b(?:IB|InfiniBand|HCA|mlx[45]_\w{1,12}|NIC|RoCE|ibp?\d\w{0,12})\b.{0,60}"
                      r"\b(?:down|inactive|not active|polling|missing|disabled|not detected|dead)\b"),
        ("storage", r"check_fs_|\bnot mounted\b|\bstale (?:NFS )?file|read-?only file ?system|\b(?:nfs|lustre"
                    r"|gpfs|beegfs"
                    r"|weka|ceph)\b.{0,40}\b(?:hung|down|missing|fail\w*|not|stale|timeout)|\bdisk (?:is )?full"),
        ("pcie", r"\bPCI(?:e|-E)\b.{0,40}\b(?:width|gen|speed|downgrad\w*|degrad\w*|x\d{1,2})\b"),
    )
)  # fmt: skip
"""By name, in the order in which they are asked."""

_WANTED = re.compile(
    r"^\W{0,4}(?:none|unknown|n/?a|-)?\W{0,4}$|\b(?:maint(?:enance)?|reserv\w*|upgrad\w*|updat\w*|reinstall\w*"
    r"|re-?imag\w*"
    r"|firmware|planned|scheduled|schedule|testing|test|burn-?in|power_?sav\w*|powered down|reboot (?:asap"
    r"|requested|complete)"
    r"|moved?|decommission\w*|resum\w*)\b",
    re.IGNORECASE,
)
"""Sentences by which somebody keeps a node free on purpose."""


def part_of(reason: str) -> str:
    """The name of the part that a sentence finds at fault, "" for none."""
    return next((name for name, pattern in PARTS if pattern.search(reason)), "") or setup_fault(reason)


def kind_of(reason: str) -> str:
    """The kind of event that a sentence makes; "" for one that tells of no fault."""
    part = part_of(reason)
    if part and not _on_purpose(reason):
        return REPORTED + part
    return "" if _on_purpose(reason) else OUT_OF_SERVICE


def _on_purpose(reason: str) -> bool:
    """Whether a node is kept free on purpose. A health check that fails is never one."""
    return _WANTED.search(reason) is not None and not re.match(r"\s*(?:NHC|check_)\b", reason)


__all__ = ["PARTS", "kind_of", "part_of"]
