"""The kinds of mend, by the check whose causes each prices. Adding one: a class in the file of its family, a line here,
a test. The file is imported where such a cause is priced."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from topodiag.model.dimensions import Role
from topodiag.model.finding import Finding
from topodiag.model.verdict import Agreement, Price

if TYPE_CHECKING:
    from topodiag.verdict.pricing.mend import Mend

MENDS = {
    "NVL001": "link_mends:NvLinks",
    "NVL002": "link_mends:NvLinks",
    "NVL004": "link_mends:NvLinks",
    "TOP004": "link_mends:NvLinks",
    "NVL005": "link_mends:NoFabric",
    "PCI001": "link_mends:NarrowPcie",
    "PCI002": "link_mends:NarrowPcie",
    "P2P001": "link_mends:NoPeerToPeer",
    "NIC001": "network_mends:FewerNics",
    "NIC002": "network_mends:FewerNics",
    "NIC005": "network_mends:FewerNics",
    "NET003": "network_mends:FewerNics",
    "NET001": "network_mends:Sockets",
    "NET005": "network_mends:Sockets",
    "NET010": "network_mends:Sockets",
    "GDR001": "network_mends:NoGpuDirect",
    "ENV001": "setting_mends:Setting",
    "P2P002": "setting_mends:Setting",
    "JOB003": "setting_mends:Setting",
    "TOP002": "setting_mends:TopologyFile",
}

GROUPS = {"PLC001": (Role.TP, Role.CP, "all_reduce"), "PLC002": (Role.EP, Role.EP, "alltoall")}
"""By check the roles of the groups that it is about, and the collective that they spend their time in."""

NO_NUMBER = {
    "PCI003": "the loss grows with the number of retried packets, and no counter measures it",
    "PCI004": "what a redirected or refused access costs follows from what NCCL then does: no source shows it here",
    "NUM001": "how much a way between sockets costs depends on what else uses it: NCCL has no figure of it",
    "NUM002": "a process on far cores adds latency: NCCL has no figure of it",
    "NIC003": "the loss grows with the number of lost packets, and no counter measures it",
    "NIC004": "what differs between NICs has no bandwidth of its own",
    "NET009": "what a lossy class costs depends on who else sends at the time",
    "GPU004": "a slow GPU makes the others wait: the model of the links has no figure for it",
    "HST003": "host settings cost latency: NCCL has no figure of it",
    "HST005": "a driver or device that hangs stops a job: that is no bandwidth",
    "HST006": "storage that does not answer stops a job: that is no bandwidth",
    "JOB008": "a late rank makes the others wait: that is no bandwidth",
}
"""Why there is no number for causes without a mend."""


@cache
def mend_of(check: str) -> Mend | None:
    """The mend of a check's causes, None where no source gives a number."""
    if check not in MENDS:
        return None
    module, _, name = MENDS[check].partition(":")
    mend: Mend = getattr(import_module(f"topodiag.verdict.pricing.{module}"), name)()
    return mend


def without_mend(finding: Finding, why: str = "") -> Price:
    """The price that the finding itself gives, and why the job's loss has no number."""
    why = why or NO_NUMBER.get(finding.id, "")
    text = "; ".join(part for part in (finding.cost.text, why) if part)
    agreement = Agreement.NOT_PREDICTED
    return Price(finding.cost.gbs_lost, finding.cost.share, text=text, agreement=agreement)
