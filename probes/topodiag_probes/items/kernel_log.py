"""The kernel log, only the lines about GPUs, NICs, PCI Express, the IOMMU, and storage that does not answer."""

import re
from typing import List

from topodiag_probes.interface import CommandProbe, Outcome, Probe

_WANTED = re.compile(
    rb"Xid|NVRM|nvidia|nvswitch|mlx[45]|infiniband|bnxt|\bice\b|\befa\b|AER:|PCIe Bus Error|PCIe bandwidth|pcieport"
    rb"|[Ll]ink (?:is )?(?:[Uu]p|[Dd]own|UP|DOWN)|[Cc]arrier|[Ii]ommu|IOMMU|DMAR|AMD-Vi|peer_mem|peermem|gdrdrv"
    rb"|blocked for more than|nfs: server|Lustre: .*Connection (?:to|restored)|ceph: mds|has not responded"
    rb"|I/O error, dev|(?:EXT4|BTRFS|F2FS)[ -]\S{0,4}(?:error|critical)|XFS \(\S{1,60}\): .*(?:[Ss]hut|I/O [Ee]rror)"
    rb"|nvme nvme\d+: .*(?:timeout|controller is down)"
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
    lines = ("lines about GPUs, NICs, PCI Express, links, the IOMMU, storage that does not answer and blocked tasks",)
    return [
        Dmesg("dmesg", "kernel-log", ["dmesg"], root_adds=adds, keep=wanted, keeps=lines),
        Journal("journal", "kernel-log", journal, root_adds=adds, keep=wanted, keeps=lines),
    ]
