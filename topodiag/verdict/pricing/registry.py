"""The kinds of mend. Adding one: a class in the file of its family, a line here, a test."""

from __future__ import annotations

from topodiag.verdict.pricing import link_mends, network_mends, setting_mends
from topodiag.verdict.pricing.mend import Mend

MENDS: tuple[type[Mend], ...] = (
    link_mends.NvLinks,
    link_mends.NoFabric,
    link_mends.NarrowPcie,
    link_mends.NoPeerToPeer,
    network_mends.FewerNics,
    network_mends.Sockets,
    network_mends.NoGpuDirect,
    setting_mends.Setting,
    setting_mends.TopologyFile,
)

NO_NUMBER = {
    "PCI003": "retried packets cost in proportion to their number, and no counter gives bandwidth",
    "PCI004": "what a redirected or refused access costs follows from what NCCL then does: no source shows it here",
    "NUM001": "how much a way between sockets costs depends on what else uses it: NCCL has no figure of it",
    "NUM002": "a process on far cores adds latency: NCCL has no figure of it",
    "NIC003": "lost packets cost in proportion to their number, and no counter gives bandwidth",
    "NIC004": "what differs between NICs has no bandwidth of its own",
    "NET009": "what a lossy class costs depends on who else sends at the time",
    "GPU004": "a slow GPU makes the others wait: how long is in no model of the links",
    "HST003": "host settings cost latency: NCCL has no figure of it",
    "HST005": "a driver or device that hangs stops a job: that is no bandwidth",
    "HST006": "storage that does not answer stops a job: that is no bandwidth",
    "JOB008": "a late rank makes the others wait: that is no bandwidth",
}
"""Why there is no number for causes without a mend."""


def mend_of(check: str) -> Mend | None:
    """The mend of a check's causes, None where no source gives a number."""
    return next((kind() for kind in MENDS if check in kind.checks), None)
