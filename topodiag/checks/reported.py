"""What a scheduler or a monitor of nodes says of a node, as findings of the checks that judge such a fault.

The sentence is a verdict without its evidence: it counts where the check itself found nothing, and never more than
medium; a line of a tool that topodiag does not know is a warning of low confidence, and nothing where the check looked
and found all well. A sentence that names no part becomes a line that nothing explains (`checks/node/troubles.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity, Status, Where
from topodiag.model.node import Node
from topodiag.model.system import HELD, REPORTED, TOLD_OF, KernelEvent
from topodiag.words.fold import plural

MOST_SHOWN = 8
_NAMED = re.compile(rf"(\S{{1,253}})(?:{re.escape(HELD)}| gives out | has the condition )")
"""What begins with the nodes that it is of."""
_COSTS = {
    "peermem": "without DMA-BUF the traffic of GPUs goes through the memory of the host",
    "devices": "no RDMA over that device from here",
    "link-slow": "what goes over this link is held to its pace",
    "link-errors": "packets are sent again, and connections die when it is many",
}
_BY = dict.fromkeys(("link-slow", "link-errors"), "by the word of a tool of the fabric") | {
    "peermem": "as modprobe says", "devices": "as ibv_devinfo says",
}  # fmt: skip

WORDS: dict[str, tuple[str, str, str, str]] = {
    "gpu-lost": ("GPU001", "a GPU is lost", "GPUs that all answer",
                 "`nvidia-smi -L` and `dmesg -T | grep -i xid` on the node: which GPU is missing, and since when"),
    "gpu-count": ("GPU001", "the node has fewer GPUs than it should have", "the GPUs that it is configured with",
                  "`nvidia-smi -L` and `lspci -d 10de:` on the node: is a GPU lost, or does the driver not run?"),
    "gpu-memory": ("GPU002", "a GPU has a fault of its memory", "no uncorrectable error, no row that waits for a remap",
                   "`nvidia-smi -q -d ECC,ROW_REMAPPER` on the node: which GPU, and whether a reset mends it"),
    "xid": ("GPU003", "the driver logged an Xid", "no Xid of a fault of the hardware",
            "`dmesg -T | grep -i xid` on the node: the number says which part"),
    "nvlink": ("NVL001", "NVLinks are not as they should be", "all NVLinks active",
               "`nvidia-smi nvlink -s` and `nvidia-smi nvlink -e` on the node: which GPU and which links"),
    "fabric": ("NVL005", "the NVLink fabric is not ready", "a fabric manager that runs, and a fabric that is complete",
               "`systemctl status nvidia-fabricmanager` and `nvidia-smi -q | grep -A6 Fabric` on the node"),
    "gpu-clocks": ("GPU004", "clocks of GPUs are held down", "clocks that the product reaches",
                   "`nvidia-smi -q -d PERFORMANCE,CLOCK` on the node: the reason that holds them"),
    "port-flap": ("NIC003", "the link of a network port goes down and comes back", "links that stay up",
                  "`dmesg -T | grep -iE 'link|mlx5'` on the node; clean and reseat the cable of that port"),
    "port-count": ("NIC005", "the node has fewer adapters than it should have", "all adapters of the node",
                   "`lspci | grep -i mellanox` and `ibstat -l` on the node: is it off the bus, or without its driver?"),
    "link-slow": ("NIC002", "a link of the fabric is below what it should be", "links at what both ends can do",
                  "`iblinkinfo` for that port: what it runs at and what both ends could do; then its cable"),
    "link-errors": ("NIC003", "a link of the fabric has errors", "counters of errors that stay as they are under load",
                    "`mlxlink -d DEVICE -c` or `perfquery -x` for that port, twice with a minute between; its cable"),
    "port-down": ("NIC001", "a network port is not active", "ports that are Active and LinkUp",
                  "`ibstat` on the node: state and physical state of that port; then its cable and its switch port"),
    "peermem": ("GDR001", "the module for RDMA with GPU memory does not load", "nvidia-peermem loaded, or DMA-BUF",
                "`dmesg | grep -i peer` after `modprobe nvidia-peermem`: reinstall the driver after the RDMA stack"),
    "devices": ("HST002", "an RDMA device that is seen cannot be opened", "a device node for each device that is seen",
                "`ls -l /dev/infiniband` here and on the host: uverbs of the devices must be passed in"),
    "storage": ("HST006", "storage is missing or does not answer", "storage that is mounted and answers",
                "`findmnt` and `timeout 10 ls` of what is named, on this node and on another"),
    "pcie": ("PCI001", "a PCIe link is below what it should be", "links at the width and speed of their devices",
             "`sudo lspci -vv` on the node: LnkSta beside LnkCap of that device"),
    "iommu": ("PCI004", "the IOMMU translates the accesses of devices", "groups of type `identity` (passthrough)",
              "`cat /proc/cmdline`, `dmesg | grep -i iommu`: boot bare metal with iommu=pt; a guest's is the host's"),
    "rank-late": ("JOB008", "a rank takes longer than the others for its own part of a step",
                  "ranks that take the same time",
                  "what that rank does: data loader, logging, checkpoint, clocks of its GPU; the others only wait"),
    "versions-differ": ("JOB002", "a host has another version than the others", "one version on all nodes",
                        "start the same image on all nodes; which library is loaded: LD_LIBRARY_PATH, `pip list`"),
    "settings-differ": ("JOB003", "a host has another setting than the others", "one value on all ranks",
                        "export settings once, in the job script; remove nccl.conf lines of single nodes"),
    "gpu-shared": ("JOB004", "several processes share a GPU", "one process on each GPU",
                   "set the device from the local rank before init, or CUDA_VISIBLE_DEVICES for each task"),
    "pcie-errors": ("PCI003", "a PCIe link has errors", "no uncorrected error of PCIe",
                    "`dmesg -T | grep -i aer` on the node: which device, and is it always the same slot?"),
}  # fmt: skip
"""By part: the check, what is wrong, what should be, what to look at first."""

OF_JOBS = ("JOB002", "JOB003", "JOB008")
"""Checks of jobs that rows of ranks or hosts speak of (evidence/host/sibling_rows.py)."""


def with_reports(outcome: Outcome, node: Node) -> Outcome:
    """The outcome of a check with what others say of the same fault, where it found none itself."""
    if outcome.status is Status.FINDING:
        return outcome
    told_by = (REPORTED,) if outcome.status is Status.CLEAN else (REPORTED, TOLD_OF)
    by_part: dict[tuple[str, str, str], list[KernelEvent]] = {}
    for event in node.events:
        by = next((each for each in told_by if event.kind.startswith(each)), "")
        part = event.kind.removeprefix(by)
        if by and part in WORDS and WORDS[part][0] == outcome.check:
            named = _NAMED.match(event.text)
            by_part.setdefault((by, part, named[1] if named is not None else node.host), []).append(event)
    if not by_part:
        return outcome
    findings = tuple(_finding(where, by, part, events) for (by, part, where), events in by_part.items())
    return Outcome(outcome.check, Status.FINDING, node.host, findings, coverage=outcome.coverage)


def of_jobs(node: Node) -> tuple[Outcome, ...]:
    """What a text about ranks that is no log of a job says, of checks that judge no node; none without such a text."""
    asked = (Outcome(check, Status.NOT_APPLICABLE, node.host) for check in OF_JOBS)
    return tuple(each for one in asked if (each := with_reports(one, node)).status is Status.FINDING)


def _finding(nodes: str, by: str, part: str, events: Sequence[KernelEvent]) -> Finding:
    check, wrong, expected, look = WORDS[part]
    known = by == REPORTED
    whose = _BY.get(part, "by the word of a scheduler or a test of the node") if known else "in the text's own words"
    said = events[0].text[:160]
    more = f", and {plural(len(events) - 1, 'other line')} alike" if len(events) > 1 else ""
    return Finding(
        id=check,
        severity=Severity.ERROR if known else Severity.WARNING,
        message=f"{wrong}, {whose}: {said}{more}",
        observed=said,
        expected=expected,
        fix=(look, "this sentence is all that was given: `topodiag scan` on the node shows more"),
        where=Where(nodes=(nodes,)),
        cost=Cost(text=_COSTS.get(part, "a job on this node meets the fault, or does not start there")),
        evidence=tuple(event.origin for event in events[:MOST_SHOWN]),
        confidence=Confidence.MEDIUM if known else Confidence.LOW,
    )


__all__ = ["OF_JOBS", "WORDS", "of_jobs", "with_reports"]
