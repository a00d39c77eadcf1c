"""Checks that a tool names and calls failed: what was tested is in the name, in any spelling; the outcome is a word.

    GPU2           pcie_width            x16        x8         FAIL          PCIe, below what it should be
    [FAILED] nvidia_peermem: module is not loaded                            peer memory
    ✘ ib_port_state (mlx5_3)                                                 a port that is not active
    iommu         abnormal   IOMMU is on        IOMMUNotClosed (critical)    IOMMU
    pcie_width: 0 failed, 16 passed                                          nothing

Reports of health scripts are such lines: one a check. A line counts where its outcome stands as a word of its own, and
no count of zero, no other outcome and no condition stands beside it.
"""

from __future__ import annotations

import re

from topodiag.evidence.host.part_states import Said

MAX_LINE = 600
_FAILED = re.compile(
    r"(?<![\w./:-])(?:FAIL(?:ED|URE)?|NOT[ _]OK|NOK|BAD|CRIT(?:ICAL)?|UNHEALTHY|ABNORMAL|WRONG|MISMATCH|DEGRADED"
    r"|INCORRECT)(?![\w./-])"
    r"|(?<![\w./:-])(?:[Ff]ail(?:ed)?|[Uu]nhealthy|[Aa]bnormal|[Cc]ritical|[Ff]ault)(?=\s{0,4}(?:$|[|)\]:,]|\s{2}|- ))"
    r"|(?:^|[\s|\[(])[✘✗❌✖❗](?=$|[\s|\])\ufe0f])"
)
_OTHERWISE = re.compile(
    r"\b(?:PASS(?:ED)?|pass(?:ed)?|OK|ok|success\w*|SUCCESS|SKIP\w*|skipped|healthy|HEALTHY|normal|NORMAL)\b|[✔✓✅]"
    r"|\b0{1,3}\s{1,3}(?:FAIL|fail|crit|CRIT)|\b(?:FAIL\w*|fail\w*|crit\w*|CRIT\w*)\s{0,3}[:=]\s{0,3}(?:0\b|false\b|none\b)"
    r"|\b(?:if|when|should|would|could|may|might|example|threshold|expected to fail|unless|until)\b|::|\.py\b"
    r"|\?\s*$|^\s{2,40}[\w-]{1,60}: \w{1,20}\s*$"
)
"""Another outcome on the line, a count of none, a condition, a test of a program."""
_WORDS = re.compile(r"[A-Z]{2,}(?=[A-Z][a-z])|[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+\d?|\d+")
"""Words of a name, whichever way they are joined: `pcie_width`, `PcieWidth`, `PCIeACSNotClosed`, `ib-link-flap`."""
_TOPICS = tuple(
    (part, fault, re.compile(pattern))
    for part, fault, pattern in (
        ("PCIe access control", "acs", r" acs "),
        ("IOMMU", "iommu", r" iommu "),
        ("peer memory module", "peermem", r" (?:nv |nvidia )?peer ?mem(?:ory)? | nvpeermem | gpu ?direct (?:rdma"
                                          r" )?| gdr (?!copy )"),
        ("PCIe device", "pcie-errors", r" pcie? (?:\w+ ){0,3}(?:aer|errors?|replays?|fatal) "),
        ("PCIe device", "pcie", r" pcie? (?:\w+ ){0,3}(?:width|speed|gen(?:eration)?|lanes?|link|degraded?) | link"
                                r" width "),
        ("NVLink", "nvlink", r" nvlinks? "),
        ("fabric", "fabric", r" (?:fabric ?manager|nvswitch(?:es)?|imex|nvlink fabric) "),
        ("memory of a GPU", "gpu-memory", r" (?:ecc|row ?remap\w*|remapp?(?:ed|ing) rows?|sbe|dbe|retired pages?) "),
        ("GPU", "xid", r" xids? "),
        ("GPU", "gpu-clocks", r" (?:throttl\w+|clocks?|thermal|slowdown) "),
        ("GPU", "gpu-count", r" gpus? (?:count|number|num|missing|lost|presence|detection) | num(?:ber of)? gpus "),
        ("shared memory", "shm", r" (?:dev )?shm "),
        ("locked memory", "memlock", r" (?:mem ?lock|locked memory) "),
        ("network port", "port-flap", r" (?:flaps?|flapping|link ?flap) "),
        ("network port", "link-errors",
         r" (?:ib|infiniband|nic|hca|rdma|roce|port|link|mlx\w*|cable|optics?) (?:\w+ ){0,3}(?:ber|symbol|fec|crc"
         r"|errors?|signal) | ber "),
        ("network port", "link-slow", r" (?:ib|infiniband|nic|hca|rdma|roce|port|mlx\w*|eth\w*|en[opsx]\w*|ib)"
                                      r" (?:\w+ ){0,9}(?:speed|rate|width) "),
        ("network port", "port-count",
         r" (?:ib|infiniband|nic|hca|rdma|roce|mlx\w*|efa) (?:\w+ ){0,3}(?:count|number|num|missing|lost|presence) "),
        ("network port", "port-down",
         r" (?:ib|infiniband|nic|hca|rdma|roce|port|mlx\w*|efa) (?:\w+ ){0,3}(?:state|status|links?|active|down|up"
         r"|ports?) "),
    )
)  # fmt: skip
"""What the words of a name say is tested, in the order in which they are asked."""


def verdict_of(line: str) -> Said | None:
    """The part whose check a line says failed; None where it says nothing of the kind."""
    if len(line) > MAX_LINE:
        return None
    failed = _FAILED.search(line)
    if failed is None or _OTHERWISE.search(line) is not None:
        return None
    return topic_of(f"{line[: failed.start()]} {line[failed.end() :]}", failed[0].strip(" \t|[(").lower())


def _spelt(name: str) -> str:
    """A name whose compounds are one word each."""
    for compound in ("PCIe", "NVLink", "NVSwitch", "InfiniBand", "RoCE", "MemLock", "GPUDirect"):
        name = name.replace(compound, compound.capitalize())
    return name


def topic_of(name: str, state: str) -> Said | None:
    """The part that the words of a name speak of, in a state."""
    words = f" {' '.join(word.lower() for word in _WORDS.findall(_spelt(name[:MAX_LINE])))} "
    return next((Said(part, state, fault) for part, fault, pattern in _TOPICS if pattern.search(words)), None)


__all__ = ["topic_of", "verdict_of"]
