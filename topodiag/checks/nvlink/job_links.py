"""NVLinks that NCCL leaves out, by its own words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.job.evidence import gpu_word, said_by
from topodiag.checks.words import hosts_word, quoted
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Finding, Outcome, Severity
from topodiag.model.job import Job
from topodiag.model.provenance import Origin
from topodiag.words.fold import fold_runs, plural

_LINK = regex(r"RemoteDeviceType for NVLink (\d{1,3})\b")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """By host: the NVLinks that NCCL left out of each GPU, and one line."""

    links: Mapping[str, Mapping[str, frozenset[int]]]
    origins: tuple[Origin | None, ...]
    remain: bool
    """Other NVLinks of these GPUs are in NCCL's print."""


class NvlinksLeftOutInLog(JobCheck[LeftOut]):
    """NVL004 by a job's log: NVML does not tell NCCL what is at the other end of NVLinks, which it then leaves out."""

    id = "NVL004"

    def observe(self, judged: Job, peers: Sequence[Job]) -> LeftOut | Outcome:
        links: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        origins = []
        ranks = {rank.process: rank.rank for rank in judged.ranks}
        for number, text, where in said_by(judged, "nvlink untold"):
            match = _LINK.search(text)
            if match is None or number < 0:
                continue
            gpu = gpu_word(judged, ranks.get(number, -1)) or f"process {judged.processes[number].pid}"
            links[judged.processes[number].host][gpu].add(int(match[1]))
            origins.append(where)
        if not links:
            return self.not_applicable(judged, "no line of NCCL 2.31 or later speaks of an NVLink that it leaves out")
        frozen = {host: {gpu: frozenset(numbers) for gpu, numbers in gpus.items()} for host, gpus in links.items()}
        return LeftOut(frozen, tuple(origins), _have_nvlinks(judged, set(links)))

    def tell(self, judged: Job, observed: LeftOut) -> Iterator[Finding]:
        hosts = list(observed.links)
        gpus = sorted({gpu for link in observed.links.values() for gpu in link})
        count = max(len(links) for link in observed.links.values() for links in link.values())
        yield self.finding(
            self.where(hosts, gpus=gpus),
            "some links left out" if observed.remain else "links left out",
            f"{hosts_word(hosts) or 'a node'}: NCCL leaves out {plural(count, 'NVLink')} of {fold_runs(gpus)}: NVML"
            " does not say what is at the other end",
            severity=Severity.WARNING if observed.remain else Severity.ERROR,
            observed=quoted(next((where.text for where in observed.origins if where is not None), "")),
            evidence=observed.origins,
        )


def _have_nvlinks(job: Job, hosts: set[str]) -> bool:
    """Whether NCCL's own print of one of these hosts has NVLinks."""
    return any(
        link.kind == "NVL"
        for communicator in job.communicators
        for host, system in communicator.systems.items()
        if host in hosts
        for link in system.links
    )
