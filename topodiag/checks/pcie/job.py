"""PCIe of a job's nodes, by its log: narrow links, and ACS between GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.checks.interface import JobCheck, hosts_in, hosts_word
from topodiag.checks.shared.job.logs import SystemPrint, most, named_by, prints, ranks_and_labels, topology_file
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.model.nccl_view import NcclSystem
from topodiag.words.units import fold_runs, in_gbs

NARROW = 0.7
"""Part of the peers' bandwidth below which a link is another one: a step of width or speed halves it."""

SIBLINGS = 3
"""GPUs with one bandwidth that make the others odd: fewer may be cards of different kinds."""

ELSEWHERE = (
    "NCCL reads the widest width of a link from sysfs, not the trained one: `topodiag scan` of the node, or"
    " `nvidia-smi -q` shows a link that is narrow"
)


class NarrowLinkInLog(JobCheck, id="PCI001"):
    """PCI001 by a job's log: NCCL's print gives a GPU less PCIe bandwidth than its peers."""

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        seen = list(prints(judged))
        reports = (self._report(judged, system_print, _narrow(system_print.system)) for system_print in seen)
        if narrow := [finding for finding in reports if finding is not None]:
            return self.with_findings(judged, narrow, Coverage(len(seen), len(judged.hosts), "nodes printed"))
        return self.not_applicable(judged, ELSEWHERE)

    def _report(self, job: Job, seen: SystemPrint, narrow: tuple[Mapping[str, float], float] | None) -> Finding | None:
        """GPUs of a host's print with a link below their peers'."""
        if narrow is None:
            return None
        short, usual = narrow
        file, where = topology_file(job)
        ranks, labels = ranks_and_labels(job, seen, short)
        lowest, begin = min(short.values()), seen.system.origin
        rows = [f"PCI[{gbs:.1f}] - {name}" for name, gbs in short.items()]
        # A name of the print (`GPU/0-1b000`) ends in hexadecimal and stays whole.
        which = ", ".join(labels) if any("/" in label for label in labels) else fold_runs(labels)
        return self.finding(
            self.where([seen.host] if seen.host else [], ranks=ranks, gpus=labels),
            self.advice("narrow in the log", usual=f"{usual:.1f}"),
            f"{which} of {seen.host or 'a node'}: {in_gbs(lowest)} of PCIe in NCCL's print, its peers have"
            f" {in_gbs(usual)}",
            observed=", ".join(rows),
            fix=self.steps("check the file" if file else "", "link while busy", "reseat the gpu", file=file),
            cost=Cost(usual - lowest, 1 - lowest / usual, f"what passes this GPU's PCIe link: {in_gbs(lowest)}"),
            evidence=[*(replace(begin, text=f"+ {row} in the print that begins here") for row in rows if begin), where],
        )


def _narrow(system: NcclSystem) -> tuple[Mapping[str, float], float] | None:
    """GPUs with a narrow link and what most have; None where all are alike, or nobody is the rule."""
    gpus = {gpu.name for gpu in system.of_kind("GPU")}
    gbs = {link.b: link.gbs for link in system.links if link.kind == "PCI" and link.b in gpus and link.gbs > 0}
    usual = most(round(gbs * 10) for gbs in gbs.values()) / 10
    alike = sum(abs(gbs - usual) < 0.1 for gbs in gbs.values())
    short = {name: gbs for name, gbs in gbs.items() if gbs < NARROW * usual}
    return (short, usual) if short and alike >= SIBLINGS and alike > len(short) else None


class AcsHinted(JobCheck, id="PCI004"):
    """PCI004 by a job's log: NCCL or RCCL names ACS or the IOMMU."""

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        hints: list[Event] = [*named_by(judged, "acs", "hint")]
        hints += [event for event in judged.events if event.level == "WARN" and "acs" in event.details]
        if not hints:
            return self.not_applicable(judged, "no line speaks of ACS or the IOMMU: `topodiag scan` of the node does")
        # A kernel may pass through by default (CONFIG_IOMMU_DEFAULT_PASSTHROUGH), and a guest has no IOMMU to set: RCCL
        # looks for the words alone, which are never by themselves why a job failed.
        by_words = all("not on command line" in hint.details for hint in hints)
        at = hosts_word(hosts_in(hints)) or "a node"
        finding = self.of_events(
            hints,
            "job acs",
            f"{at}: ACS or the IOMMU may send GPU traffic through the host bridge",
            self.where(hosts_in(hints)),
            severity=Severity.INFO if by_words else Severity.WARNING,
            confidence=Confidence.MEDIUM if by_words else Confidence.LOW,
        )
        return self.any_of(judged, [finding])
