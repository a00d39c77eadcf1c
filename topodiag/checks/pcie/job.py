"""PCIe of a job's nodes, by its log: narrow links, and ACS between GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.job.evidence import SystemPrint, gpu_word, most, prints, said_by, settings_of
from topodiag.checks.words import hosts_word, quoted
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Job
from topodiag.model.nccl_view import NcclSystem
from topodiag.model.provenance import Origin
from topodiag.words.fold import fold_runs
from topodiag.words.units import in_gbs

NARROW = 0.7
"""Part of the peers' bandwidth below which a link is another one: a step of width or speed halves it."""

SIBLINGS = 3
"""GPUs with one bandwidth that make the others odd: fewer may be cards of different kinds."""

ELSEWHERE = (
    "NCCL reads the widest width of a link from sysfs, not the trained one: `topodiag scan` of the node, or"
    " `nvidia-smi -q` shows a link that is narrow"
)


@dataclass(frozen=True, slots=True)
class NarrowLinks:
    """By host's print: GPUs with a link below their peers', in GB/s, and what the peers have."""

    narrow: tuple[tuple[SystemPrint, Mapping[str, float], float], ...]
    coverage: Coverage


class NarrowLinkInLog(JobCheck[NarrowLinks]):
    """PCI001 by a job's log: NCCL's print gives a GPU less PCIe bandwidth than its peers."""

    id = "PCI001"

    def observe(self, judged: Job, peers: Sequence[Job]) -> NarrowLinks | Outcome:
        seen = list(prints(judged))
        if not seen:
            return self.unknown(judged, ELSEWHERE)
        coverage = Coverage(len(seen), len(judged.hosts), "nodes printed")
        narrow = [(system_print, *pair) for system_print in seen if (pair := _narrow(system_print.system)) is not None]
        return NarrowLinks(tuple(narrow), coverage) if narrow else self.clean(judged, ELSEWHERE, coverage)

    def findings(self, judged: Job, observed: NarrowLinks) -> Iterator[Finding]:
        file, where = _file(judged)
        for system_print, short, usual in observed.narrow:
            worlds = {name: system_print.world_rank(system_print.system.devices[name]) for name in short}
            labels = [gpu_word(judged, world) or name for name, world in worlds.items()]
            lowest = min(short.values())
            host = system_print.host or "a node"
            yield self.finding(
                self.where(
                    [system_print.host] if system_print.host else [],
                    ranks=[world for world in worlds.values() if world >= 0],
                    gpus=labels,
                ),
                "narrow in the log",
                f"{_words(labels)} of {host}: {in_gbs(lowest)} of PCIe in NCCL's print, its peers have {in_gbs(usual)}",
                observed=", ".join(f"PCI[{gbs:.1f}] - {name}" for name, gbs in short.items()),
                expected=f"PCI[{usual:.1f}], as the other GPUs of the node",
                fix=(
                    *(
                        (f"`topodiag topo check {file}`: the link_width and link_speed that the file gives this GPU",)
                        if file
                        else ()
                    ),
                    "`nvidia-smi -q -d PCIE` on the node while the GPU is busy: is the link narrow, or only the file?",
                    "reseat the GPU or its riser, swap with a peer; then write the topology file again",
                ),
                cost=Cost(usual - lowest, 1 - lowest / usual, f"what passes this GPU's PCIe link: {in_gbs(lowest)}"),
                evidence=[*(_row(system_print.system.origin, name, gbs) for name, gbs in short.items()), where],
            )


def _narrow(system: NcclSystem) -> tuple[Mapping[str, float], float] | None:
    """GPUs with a narrow link and what most have; None where all are alike, or nobody is the rule."""
    gpus = {gpu.name for gpu in system.of_kind("GPU")}
    gbs = {link.b: link.gbs for link in system.links if link.kind == "PCI" and link.b in gpus and link.gbs > 0}
    usual = most(round(gbs * 10) for gbs in gbs.values()) / 10
    alike = sum(abs(gbs - usual) < 0.1 for gbs in gbs.values())
    short = {name: gbs for name, gbs in gbs.items() if gbs < NARROW * usual}
    return (short, usual) if short and alike >= SIBLINGS and alike > len(short) else None


def _words(labels: Sequence[str]) -> str:
    """Numbers folded; a name of the print (`GPU/0-1b000`) ends in hexadecimal and stays whole."""
    return ", ".join(labels) if any("/" in label for label in labels) else fold_runs(labels)


def _row(origin: Origin | None, name: str, gbs: float) -> Origin | None:
    """The row of the print, at the line with which the print begins."""
    return replace(origin, text=f"+ PCI[{gbs:.1f}] - {name} in the print that begins here") if origin else None


def _file(job: Job) -> tuple[str, Origin | None]:
    """The topology file of the job and the line that names it, "" without one."""
    for _, text, where in said_by(job, "topo file"):
        if "Loading topology" in text:
            return text.rpartition("file ")[2].strip(), where
    for given in settings_of(job, "NCCL_TOPO_FILE").values():
        return given[0][1].value, given[0][1].origin
    return "", None


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

    def findings(self, judged: Job, observed: Hints) -> Iterator[Finding]:
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
