"""The kernel log, only the lines about GPUs, NICs, PCI Express and the IOMMU."""

import re
from typing import List

from topodiag_probes.interface import CommandProbe, Outcome, Probe

_WANTED = re.compile(
    rb"Xid|NVRM|nvidia|nvswitch|mlx[45]|infiniband|bnxt|\bice\b|\befa\b|AER:|PCIe Bus Error|PCIe bandwidth|pcieport"
    rb"|[Ll]ink (?:is )?(?:[Uu]p|[Dd]own|UP|DOWN)|[Cc]arrier|[Ii]ommu|IOMMU|DMAR|AMD-Vi|peer_mem|peermem|gdrdrv"
)


def wanted(line: bytes) -> bool:
    return _WANTED.search(line) is not None


class Journal(CommandProbe):
    """journalctl ends well for a user who may see nothing, and says so on standard error."""

    def hidden(self, out: Outcome) -> bool:
        return out.status in ("denied", "error") or "not seeing" in out.stderr or "insufficient perm" in out.stderr


class Dmesg(CommandProbe):
    """dmesg is refused where the kernel restricts it."""

    def hidden(self, out: Outcome) -> bool:
        return out.status == "denied"


def probes() -> List[Probe]:
    journal = ["journalctl", "-k", "-b", "-o", "short-monotonic", "--no-pager"]
    adds = "the kernel log, where users may not read it"
    lines = ("lines about GPUs, NICs, PCI Express, links and the IOMMU",)
    return [
        Dmesg("dmesg", "kernel-log", ["dmesg"], root_adds=adds, keep=wanted, keeps=lines),
        Journal("journal", "kernel-log", journal, root_adds=adds, keep=wanted, keeps=lines),
    ]
