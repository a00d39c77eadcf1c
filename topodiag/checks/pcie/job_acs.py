"""What NCCL itself supposes after an error: ACS or an IOMMU between GPU and NIC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.job.evidence import said_by
from topodiag.checks.words import hosts_word, quoted
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.job import Job
from topodiag.model.provenance import Origin

BLOCKED = regex(r"\bACS\b|Access Control Services|\bIOMMU\b|iommu=pt")
"""NCCL src/transport/net_ib/common.h v2.30 (`HINT: .. when ACS is enabled ..`); RCCL src/init.cc (`iommu=pt`)."""


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

    def observe(self, judged: Job, peers: Sequence[Job]) -> Hints | Outcome:
        hints = [
            (judged.processes[number].host if number >= 0 else "", text, where)
            for number, text, where in said_by(judged, "hint")
            if BLOCKED.search(text)
        ]
        hints += [(e.host, e.text, e.origin) for e in judged.events if e.level == "WARN" and BLOCKED.search(e.text)]
        if not hints:
            return self.not_applicable(judged, "no line speaks of ACS or the IOMMU: `topodiag scan` of the node does")
        hosts = tuple(dict.fromkeys(host for host, _, _ in hints if host))
        lines = tuple((text, where) for _, text, where in hints)
        # A kernel may pass through by default (CONFIG_IOMMU_DEFAULT_PASSTHROUGH), and a guest has no IOMMU to set: RCCL
        # looks for the words alone, which are never by themselves why a job failed.
        by_words = all("Missing" in text for text, _ in lines)
        return Hints(hosts, lines, by_words)

    def tell(self, judged: Job, observed: Hints) -> Iterator[Finding]:
        first = observed.lines[0][0]
        yield self.finding(
            self.where(observed.hosts),
            "job acs",
            f"{hosts_word(observed.hosts) or 'a node'}: ACS or the IOMMU may send GPU traffic through the host bridge",
            severity=Severity.INFO if observed.harmless else Severity.WARNING,
            observed=quoted(first),
            evidence=[where for _, where in observed.lines],
            confidence=Confidence.MEDIUM if observed.harmless else Confidence.LOW,
        )
