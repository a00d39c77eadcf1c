"""NVLink of a job's nodes, by its log: the fabric, and links that NCCL does not take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from topodiag.checks.interface import JobCheck, hosts_in, hosts_word
from topodiag.checks.shared.job.logs import Line, gpu_word, named_by, ranks_on
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.model.links import fabric_bandwidth, fabric_problems
from topodiag.words.units import fold_runs, grouped, plural


class NvlinksLeftOutInLog(JobCheck, id="NVL004"):
    """NVL004 by a job's log: NVML does not tell NCCL what is at the other end of NVLinks, which it then leaves out."""

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        links: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        ranks = {rank.process: rank.rank for rank in judged.ranks}
        lines = [line for line in named_by(judged, "nvlink", "nvlink untold") if line.process >= 0]
        for line in lines:
            gpu = gpu_word(judged, ranks.get(line.process, -1)) or f"process {line.pid}"
            links[line.host][gpu].add(int(line.details["nvlink"]))
        if not lines:
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
            evidence=lines,
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
        lines = [line for line in named_by(job, "bus", "mnnvl") if line.process >= 0]
        faults = grouped((fault, line) for line in lines for fault in _faults(line.details))
        members = [line for line in lines if "health" not in line.details and int(line.details["state"]) == COMPLETED]
        findings = [self._report(job, *fault, own) for fault, own in faults.items()]
        findings += [*self._imex(job, bool(members)), *self._not_up(job), *self._nvls(job)]
        findings += judge_domains(self, job, members)
        if not findings and not lines:
            return self.not_applicable(job, "no line speaks of an NVLink fabric")
        count = _gpus(lines)
        return self.any_of(job, findings, Coverage(count, count, "GPUs"))

    def _report(self, job: Job, severity: Severity, words: str, lines: Sequence[Line]) -> Finding:
        hosts = list(dict.fromkeys(line.host for line in lines))
        message = f"{hosts_word(hosts)}: {words} on {plural(_gpus(lines), 'GPU')}"
        where = self.where(hosts, ranks=ranks_on(job, hosts))
        return self.of_events(lines, "unhealthy fabric", message, where, severity=severity)

    def _not_up(self, job: Job) -> Iterator[Finding]:
        """CUDA refuses the GPUs of a node with NVSwitches before Fabric Manager has programmed these."""
        named = ((event, event.details) for event in job.events)
        events = [event for event, details in named if details.get("fault") == "fabric" or "fabric not up" in details]
        if events:
            at = hosts_word(hosts_in(events)) or "a node"
            message = f"{at}: CUDA does not start: the NVSwitch fabric of the node is not up"
            yield self.of_events(events, "fabric not up", message)

    def _nvls(self, job: Job) -> Iterator[Finding]:
        """NVLink SHARP that could not be set up: multicast needs the switches' routes."""
        reports = [*filter(_of_nvls, job.events), *named_by(job, "no multicast", "nvls")]
        if reports:
            at = hosts_word(hosts_in(reports)) or "a node"
            memory = any("out of memory" in report.details for report in reports)
            yield self.of_events(
                reports,
                "no multicast",
                f"{at}: NVLink SHARP cannot be set up: multicast memory is not bound",
                fix=self.steps("status of the manager", "out of memory" if memory else "", "without nvls"),
            )

    def _imex(self, job: Job, between_trays: bool) -> Iterator[Finding]:
        events = [event for event in job.events if event.level == "WARN" and "no imex" in event.details]
        events = events or (_not_imported(job) if between_trays else [])
        if events:
            message = f"{hosts_word(hosts_in(events))}: NVLink between nodes is there and does not work: IMEX"
            yield self.of_events(events, "no imex", message)


def _gpus(lines: Sequence[Line]) -> int:
    return len({(line.host, line.details["bus"]) for line in lines})


def _faults(named: Mapping[str, str]) -> Iterator[tuple[Severity, str]]:
    """What is wrong with the fabric of a GPU by a line of NCCL's."""
    if "health" in named:
        yield Severity.WARNING, f"the fabric's bandwidth is {named['health'].lower().removesuffix('_bandwidth')}"
        return
    state, mask = int(named["state"]), int(named["mask"], 16)
    if state in STATES:
        yield Severity.WARNING, f"fabric registration is {STATES[state]}"
    if fabric_bandwidth(mask) == "degraded":
        yield Severity.WARNING, "the fabric's bandwidth is degraded"
    for problem in filter(None, (fabric_problems(mask) or "").split(", ")):
        yield Severity.INFO if "recovery" in problem else Severity.WARNING, f"the fabric's health: {problem}"


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
ByHost = Mapping[str, Mapping[Domain, Line]]


def judge_domains(check: JobCheck, job: Job, members: Sequence[Line]) -> Iterator[Finding]:
    """GPUs of one tray in different domains, and trays of one job in different ones, by lines that give their GPU's."""
    by_host: dict[str, dict[Domain, Line]] = defaultdict(dict)
    for line in members:
        if line.details["uuid"].strip("0.x"):
            by_host[line.host].setdefault((line.details["uuid"], line.details["clique"]), line)
    torn = {host: domains for host, domains in by_host.items() if host and len(domains) > 1}
    if torn:
        yield _inside(check, job, torn)
    whole = {host: next(iter(domains)) for host, domains in by_host.items() if host not in torn}
    shared = grouped((domain, host) for host, domain in whole.items())
    if len(shared) > 1:
        yield _between(check, job, shared, by_host)
    if lone := _without_domain(job, by_host):
        yield _outside(check, job, lone, by_host)


def _without_domain(job: Job, by_host: ByHost) -> list[str]:
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


def _outside(check: JobCheck, job: Job, lone: Sequence[str], by_host: ByHost) -> Finding:
    others = [host for host in by_host if host]
    return check.finding(
        check.where(lone, ranks=ranks_on(job, lone)),
        "tray outside",
        f"{hosts_word(lone)} {'is' if len(lone) == 1 else 'are'} in no NVLink domain, unlike {hosts_word(others)}",
        observed=f"no fabric UUID on {hosts_word(lone)}",
        evidence=[membership for host in others for membership in by_host[host].values()],
    )


def _inside(check: JobCheck, job: Job, torn: ByHost) -> Finding:
    hosts = list(torn)
    first = torn[hosts[0]]
    return check.finding(
        check.where(hosts, ranks=ranks_on(job, hosts)),
        "tray in two domains",
        f"{hosts_word(hosts)}: the GPUs of one tray are in {len(first)} NVLink domains",
        observed="; ".join(
            f"GPU {line.details['bus']}: cluster {domain[0]}, clique {domain[1]}" for domain, line in first.items()
        ),
        evidence=[domain for domains in torn.values() for domain in domains.values()],
    )


def _between(check: JobCheck, job: Job, shared: Mapping[Domain, Sequence[str]], by_host: ByHost) -> Finding:
    sizes = sorted({len(hosts) for hosts in shared.values()})
    lone = [hosts[0] for hosts in shared.values() if len(hosts) == 1]
    uneven = len(sizes) > 1 and bool(lone)
    named = lone if uneven else [host for hosts in shared.values() for host in hosts]
    clusters = {uuid for uuid, _ in shared}
    what = "clusters" if len(clusters) > 1 else "cliques of one cluster"
    message = f"the trays of the job are in {plural(len(shared), 'NVLink domain')}: different {what}"
    # A handle of memory means nothing in another domain: who shares it across them took them for one.
    failed = any(event.kind == "cuda" and "bad handle" in event.details for event in job.events)
    if uneven:
        message = f"{hosts_word(lone)} is in another NVLink domain than the trays beside it: different {what}"
    return check.finding(
        check.where(named, ranks=ranks_on(job, named)),
        "trays in several domains",
        message,
        severity=Severity.ERROR if failed else Severity.WARNING if uneven or len(clusters) == 1 else Severity.INFO,
        observed="; ".join(f"cluster {uuid}, clique {clique}: {hosts_word(h)}" for (uuid, clique), h in shared.items()),
        fix=check.steps("partition" if len(clusters) == 1 else "", "one domain"),
        evidence=[by_host[hosts[0]][domain] for domain, hosts in shared.items()],
        confidence=Confidence.HIGH if not uneven else Confidence.MEDIUM,
    )
