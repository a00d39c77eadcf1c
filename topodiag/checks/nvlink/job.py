"""NVLink of a job's nodes, by its log: the fabric, and links that NCCL does not take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from topodiag.checks.interface import JobCheck, hosts_in, hosts_word
from topodiag.checks.shared.job.logs import gpu_word, named_by, ranks_on
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.model.links import fabric_bandwidth, fabric_problems
from topodiag.model.provenance import Origin
from topodiag.words.units import fold_runs, grouped, plural


class NvlinksLeftOutInLog(JobCheck, id="NVL004"):
    """NVL004 by a job's log: NVML does not tell NCCL what is at the other end of NVLinks, which it then leaves out."""

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        links: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        origins = []
        ranks = {rank.process: rank.rank for rank in judged.ranks}
        for number, named, where in named_by(judged, "nvlink", "nvlink untold"):
            if number < 0:
                continue
            gpu = gpu_word(judged, ranks.get(number, -1)) or f"process {judged.processes[number].pid}"
            links[judged.processes[number].host][gpu].add(int(named["nvlink"]))
            origins.append(where)
        if not links:
            return self.not_applicable(judged, "no line of NCCL 2.31 or later speaks of an NVLink that it leaves out")
        hosts = list(links)
        remain = _have_nvlinks(judged, set(hosts))
        gpus = sorted({gpu for by_gpu in links.values() for gpu in by_gpu})
        count = max(len(numbers) for by_gpu in links.values() for numbers in by_gpu.values())
        finding = self.finding(
            self.where(hosts, gpus=gpus),
            "some links left out" if remain else "links left out",
            f"{hosts_word(hosts) or 'a node'}: NCCL leaves out {plural(count, 'NVLink')} of {fold_runs(gpus)}: NVML"
            " does not say what is at the other end",
            severity=Severity.WARNING if remain else Severity.ERROR,
            evidence=origins,
        )
        return self.any_of(judged, [finding])


def _have_nvlinks(job: Job, hosts: set[str]) -> bool:
    """Whether NCCL's own print of one of these hosts has NVLinks."""
    return any(
        link.kind == "NVL"
        for communicator in job.communicators
        for host, system in communicator.systems.items()
        if host in hosts
        for link in system.links
    )


P2P_FILES = ("p2p.cc:", "mnnvl.cc:", "sym_kernels.cc:", "allocator.cc:", "alloc.h:")
NVLS_FILE = "nvls.cc:"
"""Where NCCL sets NVLink SHARP up: what CUDA refuses there are multicast objects, in releases without words of their
own for it (src/transport/nvls.cc v2.17 and later)."""
COMPLETED = 3
STATES = {1: "not started", 2: "in progress"}
"""nvml.h, NVML_GPU_FABRIC_STATE."""


class FabricInLog(JobCheck, id="NVL005"):
    """NVL005 by a job's log: what NVML told NCCL of each GPU's fabric, and NVLink between trays that does not work."""

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        hosts: dict[str, set[str]] = defaultdict(set)
        faults: dict[tuple[Severity, str], dict[str, list[tuple[str, Origin | None]]]] = {}
        members: list[Membership] = []
        for number, named, where in named_by(job, "bus", "mnnvl"):
            if number < 0:
                continue
            host, bus = job.processes[number].host, named["bus"]
            hosts[host].add(bus)
            if "health" in named:
                words = f"the fabric's bandwidth is {named['health'].lower().removesuffix('_bandwidth')}"
                faults.setdefault((Severity.WARNING, words), defaultdict(list))[host].append((bus, where))
                continue
            if int(named["state"]) == COMPLETED:
                members.append(Membership(host, bus, (named["uuid"], named["clique"]), where))
            for fault in _faults(int(named["state"]), int(named["mask"], 16)):
                faults.setdefault(fault, defaultdict(list))[host].append((bus, where))
        findings = [self._report(job, *fault, by_host) for fault, by_host in faults.items()]
        findings += [*self._imex(job, bool(members)), *self._not_up(job), *self._nvls(job)]
        findings += judge_domains(self, job, members)
        if not findings and not hosts:
            return self.not_applicable(job, "no line speaks of an NVLink fabric")
        count = sum(map(len, hosts.values()))
        return self.any_of(job, findings, Coverage(count, count, "GPUs"))

    def _report(
        self, job: Job, severity: Severity, words: str, by_host: dict[str, list[tuple[str, Origin | None]]]
    ) -> Finding:
        hosts = list(by_host)
        count = sum(len({bus for bus, _ in reports}) for reports in by_host.values())
        return self.finding(
            self.where(hosts, ranks=ranks_on(job, hosts)),
            "unhealthy fabric",
            f"{hosts_word(hosts)}: {words} on {plural(count, 'GPU')}",
            severity=severity,
            evidence=[where for reports in by_host.values() for _, where in reports],
        )

    def _not_up(self, job: Job) -> Iterator[Finding]:
        """CUDA refuses the GPUs of a node with NVSwitches before Fabric Manager has programmed these."""
        events = [
            event for event in job.events if event.details.get("fault") == "fabric" or "fabric not up" in event.details
        ]
        if not events:
            return
        hosts = hosts_in(events)
        yield self.of_events(
            events,
            "fabric not up",
            f"{hosts_word(hosts) or 'a node'}: CUDA does not start: the NVSwitch fabric of the node is not up",
        )

    def _nvls(self, job: Job) -> Iterator[Finding]:
        """NVLink SHARP that could not be set up: multicast needs the switches' routes."""
        reports = [(event.host, event.rank, event.details, event.origin) for event in job.events if _of_nvls(event)]
        reports += [
            (job.processes[number].host if number >= 0 else "", -1, named, where)
            for number, named, where in named_by(job, "no multicast", "nvls")
        ]
        if not reports:
            return
        hosts = list(dict.fromkeys(host for host, *_ in reports if host))
        memory = any("out of memory" in named for _, _, named, _ in reports)
        yield self.finding(
            self.where(hosts, ranks=sorted({rank for _, rank, _, _ in reports if rank >= 0})),
            "no multicast",
            f"{hosts_word(hosts) or 'a node'}: NVLink SHARP cannot be set up: multicast memory is not bound",
            fix=self.steps("status of the manager", "out of memory" if memory else "", "without nvls"),
            evidence=[where for *_, where in reports],
        )

    def _imex(self, job: Job, between_trays: bool) -> Iterator[Finding]:
        events = [event for event in job.events if event.level == "WARN" and "no imex" in event.details]
        events = events or (_not_imported(job) if between_trays else [])
        if not events:
            return
        yield self.of_events(
            events,
            "no imex",
            f"{hosts_word(hosts_in(events))}: NVLink between nodes is there and does not work: IMEX",
        )


def _faults(state: int, mask: int) -> list[tuple[Severity, str]]:
    pairs = []
    if state in STATES:
        pairs.append((Severity.WARNING, f"fabric registration is {STATES[state]}"))
    if fabric_bandwidth(mask) == "degraded":
        pairs.append((Severity.WARNING, "the fabric's bandwidth is degraded"))
    for problem in filter(None, (fabric_problems(mask) or "").split(", ")):
        passing = "recovery" in problem
        pairs.append((Severity.INFO if passing else Severity.WARNING, f"the fabric's health: {problem}"))
    return pairs


def _not_imported(job: Job) -> list[Event]:
    """Memory of a peer that CUDA refuses where NCCL sets P2P up."""
    return [
        event
        for event in job.events
        if event.level == "WARN" and _file_of(event).startswith(P2P_FILES) and "import refused" in event.details
    ]


def _file_of(event: Event) -> str:
    return event.place.rpartition("/")[2]


def _of_nvls(event: Event) -> bool:
    if "no multicast" in event.details:
        return True
    failed = event.level == "WARN" and event.kind == "cuda" and _file_of(event).startswith(NVLS_FILE)
    return failed and "out of memory" not in event.details


# For NVL005: which NVLink domain (cluster UUID and clique) each tray of a job says that it is in.


LEAST_KINDS = 3
"""Kinds of lines that the logs of all hosts must have in common, before a line that lacks says anything."""
Domain = tuple[str, str]
"""Cluster UUID and clique, as printed."""


@dataclass(frozen=True, slots=True)
class Membership:
    """One GPU's domain by a line of its host."""

    host: str
    bus: str
    domain: Domain
    origin: Origin | None


def judge_domains(check: JobCheck, job: Job, memberships: Sequence[Membership]) -> Iterator[Finding]:
    """GPUs of one tray in different domains, and trays of one job in different ones."""
    by_host: dict[str, dict[Domain, Membership]] = defaultdict(dict)
    for membership in memberships:
        if membership.domain[0].strip("0.x"):
            by_host[membership.host].setdefault(membership.domain, membership)
    torn = {host: domains for host, domains in by_host.items() if host and len(domains) > 1}
    if torn:
        yield _inside(check, job, torn)
    whole = {host: next(iter(domains.values())) for host, domains in by_host.items() if host not in torn}
    shared = grouped((membership.domain, host) for host, membership in whole.items())
    if len(shared) > 1:
        yield _between(check, job, shared, whole)
    if lone := _without_domain(job, by_host):
        yield _outside(check, job, lone, by_host)


def _without_domain(job: Job, by_host: Mapping[str, Mapping[Domain, Membership]]) -> list[str]:
    """Hosts whose GPUs NVML gives no NVLink domain, of a job whose other hosts have one. NCCL prints it of each GPU
    that has one, so that its line lacks only where the log says as much else of a host as of the others."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for process in job.processes:
        kinds[process.host] |= {message.kind for message in process.messages} - {"mnnvl"}
    texts = [kinds[host] for host in by_host if host]
    if not texts:
        return []
    always = set.intersection(*texts)
    return [host for host in job.hosts if host not in by_host and len(always) >= LEAST_KINDS and always <= kinds[host]]


def _outside(
    check: JobCheck, job: Job, lone: Sequence[str], by_host: Mapping[str, Mapping[Domain, Membership]]
) -> Finding:
    others = [host for host in by_host if host]
    return check.finding(
        check.where(lone, ranks=ranks_on(job, lone)),
        "tray outside",
        f"{hosts_word(lone)} {'is' if len(lone) == 1 else 'are'} in no NVLink domain, unlike {hosts_word(others)}",
        observed=f"no fabric UUID on {hosts_word(lone)}",
        evidence=[membership for host in others for membership in by_host[host].values()],
    )


def _inside(check: JobCheck, job: Job, torn: Mapping[str, Mapping[Domain, Membership]]) -> Finding:
    hosts = list(torn)
    first = torn[hosts[0]]
    return check.finding(
        check.where(hosts, ranks=ranks_on(job, hosts)),
        "tray in two domains",
        f"{hosts_word(hosts)}: the GPUs of one tray are in {len(first)} NVLink domains",
        observed="; ".join(
            f"GPU {membership.bus}: cluster {domain[0]}, clique {domain[1]}" for domain, membership in first.items()
        ),
        evidence=[domain for domains in torn.values() for domain in domains.values()],
    )


def _between(
    check: JobCheck, job: Job, shared: Mapping[Domain, Sequence[str]], whole: Mapping[str, Membership]
) -> Finding:
    sizes = sorted({len(hosts) for hosts in shared.values()})
    lone = [hosts[0] for hosts in shared.values() if len(hosts) == 1]
    uneven = len(sizes) > 1 and bool(lone)
    clusters = {uuid for uuid, _ in shared}
    what = "clusters" if len(clusters) > 1 else "cliques of one cluster"
    message = f"the trays of the job are in {plural(len(shared), 'NVLink domain')}: different {what}"
    # A handle of memory means nothing in another domain: who shares it across them took them for one.
    failed = any(event.kind == "cuda" and "bad handle" in event.details for event in job.events)
    if uneven:
        message = f"{hosts_word(lone)} is in another NVLink domain than the trays beside it: different {what}"
    return check.finding(
        check.where(lone if uneven else list(whole), ranks=ranks_on(job, lone if uneven else list(whole))),
        "trays in several domains",
        message,
        severity=Severity.ERROR if failed else Severity.WARNING if uneven or len(clusters) == 1 else Severity.INFO,
        observed="; ".join(f"cluster {uuid}, clique {clique}: {hosts_word(h)}" for (uuid, clique), h in shared.items()),
        fix=check.steps("partition" if len(clusters) == 1 else "", "one domain"),
        evidence=[whole[hosts[0]] for hosts in shared.values()],
        confidence=Confidence.HIGH if not uneven else Confidence.MEDIUM,
    )
