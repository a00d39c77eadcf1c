"""What NCCL itself supposes after an error: ACS or an IOMMU between GPU and NIC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.evidence import said_by
from topodiag.checks.job.first_error import first_error
from topodiag.checks.job.text import failed
from topodiag.checks.shared.words import hosts_in, hosts_word, quoted
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.model.provenance import Origin

BLOCKED = regex(r"\bACS\b|Access Control Services|\bIOMMU\b|iommu=pt")
"""NCCL src/transport/net_ib/common.h v2.30 (`HINT: .. when ACS is enabled ..`); RCCL src/init.cc (`iommu=pt`)."""

BALANCED = regex(r"NUMA auto balancing enabled")
"""RCCL src/init.cc, ROCm 5.4 and later: it reads /proc/sys/kernel/numa_balancing at init."""


@dataclass(frozen=True, slots=True)
class Hints:
    """Hosts and lines (text, place) of the hints."""

    hosts: tuple[str, ...]
    lines: tuple[tuple[str, Origin | None], ...]
    harmless: bool = False
    """Nothing but the kernel's command line was looked at."""


class AcsHinted(JobCheck[Hints]):
    """PCI004 by a job's log: NCCL or RCCL names ACS or the IOMMU."""

    id = "PCI004"
    title = "NCCL supposes that ACS or the IOMMU is in the way"

    def observe(self, judged: Job, peers: Sequence[Job]) -> Hints | Outcome:
        told = [
            (judged.processes[number].host if number >= 0 else "", text, where)
            for number, text, where in said_by(judged, "hint")
            if BLOCKED.search(text)
        ]
        told += [(e.host, e.text, e.origin) for e in judged.events if e.level == "WARN" and BLOCKED.search(e.text)]
        if not told:
            return self.not_applicable(judged, "no line speaks of ACS or the IOMMU: `topodiag scan` of the node does")
        hosts = tuple(dict.fromkeys(host for host, _, _ in told if host))
        lines = tuple((text, where) for _, text, where in told)
        # A kernel may pass through by default (CONFIG_IOMMU_DEFAULT_PASSTHROUGH), and a guest has no IOMMU to set: RCCL
        # looks for the words alone, which are never by themselves why a job failed.
        by_words = all("Missing" in text for text, _ in lines)
        return Hints(hosts, lines, by_words)

    def tell(self, judged: Job, observed: Hints) -> Iterator[Finding]:
        first = observed.lines[0][0]
        yield self.finding(
            Severity.INFO if observed.harmless else Severity.WARNING,
            f"{hosts_word(observed.hosts) or 'a node'}: ACS or the IOMMU may send GPU traffic through the host bridge",
            observed=quoted(first),
            expected="ACS redirection off on the bridges between GPU and NIC, and the IOMMU off or in passthrough",
            fix=(
                "`lspci -vv | grep ACSCtl` as root on the node: `ReqRedir+` on a bridge is it (`topodiag scan`)",
                "off in the firmware, or `setpci` on the bridges; in a virtual machine the host has to do it",
                "iommu=pt on the kernel's command line where the IOMMU has to stay on",
            ),
            nodes=observed.hosts,
            cost=Cost(text="peer-to-peer and GPUDirect RDMA go by way of the root complex: slow, or they hang"),
            evidence=[where for _, where in observed.lines],
            confidence=Confidence.MEDIUM if observed.harmless else Confidence.LOW,
        )


class HostSettingWarned(JobCheck[Hints]):
    """HST003 by a job's log: RCCL warns of automatic NUMA balancing on its node, or NCCL's shared memory is removed
    under a job that fails of it."""

    id = "HST003"
    title = "RCCL warns of a setting of the host"

    def observe(self, judged: Job, peers: Sequence[Job]) -> Hints | Outcome:
        told = removed(judged) or [event for event in judged.events if BALANCED.search(event.text)]
        if not told:
            return self.not_applicable(judged, "no line speaks of NUMA balancing: `topodiag scan` of the node does")
        hosts = tuple(hosts_in(told))
        return Hints(hosts, tuple((event.text, event.origin) for event in told))

    def tell(self, judged: Job, observed: Hints) -> Iterator[Finding]:
        if BALANCED.search(observed.lines[0][0]) is None:
            yield self._removed(observed)
            return
        yield self.finding(
            Severity.INFO,
            f"automatic NUMA balancing is on{f' on {hosts_word(observed.hosts)}' if observed.hosts else ''}",
            observed=quoted(observed.lines[0][0]),
            expected="kernel.numa_balancing = 0",
            fix=("Set kernel.numa_balancing = 0 in /etc/sysctl.d, then `sudo sysctl --system`",),
            nodes=observed.hosts,
            cost=Cost(text="processes wait for page faults at random: RCCL speaks of performance that varies"),
            evidence=[where for _, where in observed.lines],
            confidence=Confidence.MEDIUM,
        )

    def _removed(self, observed: Hints) -> Finding:
        return self.finding(
            Severity.ERROR,
            f"{hosts_word(observed.hosts) or 'a node'}: a file of NCCL's shared memory was removed while the job began",
            observed=quoted(observed.lines[0][0]),
            expected="files in /dev/shm stay until their job removes them",
            fix=(
                "RemoveIPC=no in /etc/systemd/logind.conf: systemd takes a job's user for logged out, and clears up",
                "else a prolog, an epilog or a cleaner on this node: `grep -r /dev/shm /etc/slurm /etc/cron*`",
            ),
            nodes=observed.hosts,
            cost=Cost(text="the ranks of this node end while they connect"),
            evidence=[where for _, where in observed.lines],
            confidence=Confidence.MEDIUM,
        )


def removed(job: Job) -> list[Event]:
    """Lines of a failed job whose first error is a file of shared memory that is gone. A job that goes down for another
    reason may clear up twice."""
    told = [event for event in job.events if event.details.get("fault") == "removed"]
    first = first_error(job) if told and failed(job) else None
    return told if first is not None and first.details.get("fault") == "removed" else []
