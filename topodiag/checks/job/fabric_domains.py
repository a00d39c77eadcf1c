"""For NVL005: which NVLink domain (cluster UUID and clique) each tray of a job says that it is in."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.evidence import ranks_on
from topodiag.checks.shared.words import hosts_word
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Job
from topodiag.model.provenance import Origin
from topodiag.words.fold import plural

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


_PARTITION = "trays of one rack in different cliques: the rack's NMX controller has them in different partitions"
_HANDLE = regex(r"invalid resource handle|(?:import|map)\w{0,12} .{0,60}handle", re.IGNORECASE)


def judge_domains(check: JobCheck[Any], job: Job, told: Sequence[Membership]) -> Iterator[Finding]:
    """GPUs of one tray in different domains, and trays of one job in different ones."""
    by_host: dict[str, dict[Domain, Membership]] = defaultdict(dict)
    for each in told:
        if each.domain[0].strip("0.x"):
            by_host[each.host].setdefault(each.domain, each)
    torn = {host: domains for host, domains in by_host.items() if host and len(domains) > 1}
    if torn:
        yield _inside(check, job, torn)
    whole = {host: next(iter(domains.values())) for host, domains in by_host.items() if host not in torn}
    shared: dict[Domain, list[str]] = defaultdict(list)
    for host, each in whole.items():
        shared[each.domain].append(host)
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
    told = [kinds[host] for host in by_host if host]
    if not told:
        return []
    always = set.intersection(*told)
    return [host for host in job.hosts if host not in by_host and len(always) >= LEAST_KINDS and always <= kinds[host]]


def _outside(
    check: JobCheck[Any], job: Job, lone: Sequence[str], by_host: Mapping[str, Mapping[Domain, Membership]]
) -> Finding:
    others = [host for host in by_host if host]
    return check.finding(
        Severity.WARNING,
        f"{hosts_word(lone)} {'is' if len(lone) == 1 else 'are'} in no NVLink domain, unlike {hosts_word(others)}",
        observed=f"no fabric UUID on {hosts_word(lone)}",
        expected="one cluster UUID and one clique on all trays that are to share NVLink",
        fix=(
            "`nvidia-smi -q | grep -A6 Fabric` on the tray: a ClusterUUID of zeros is not registered",
            "Fabric Manager's log there, and the rack's NMX controller; reset the tray's GPUs, or drain it",
        ),
        nodes=lone,
        ranks=ranks_on(job, lone),
        cost=Cost(text="without it NCCL joins no trays over NVLink: all traffic between them goes over the NICs"),
        evidence=[each.origin for host in others for each in by_host[host].values()],
        confidence=Confidence.MEDIUM,
    )


def _inside(check: JobCheck[Any], job: Job, torn: Mapping[str, Mapping[Domain, Membership]]) -> Finding:
    hosts = list(torn)
    first = torn[hosts[0]]
    return check.finding(
        Severity.ERROR,
        f"{hosts_word(hosts)}: the GPUs of one tray are in {len(first)} NVLink domains",
        observed="; ".join(
            f"GPU {each.bus}: cluster {domain[0]}, clique {domain[1]}" for domain, each in first.items()
        ),
        expected="one cluster UUID and one clique on all GPUs of a tray",
        fix=(
            "`nvidia-smi -q | grep -A6 Fabric` on the tray; then the rack's NMX controller: which partition has it?",
            "reset the tray's GPUs, or drain it",
        ),
        nodes=hosts,
        ranks=ranks_on(job, hosts),
        cost=Cost(text="NCCL makes no NVLink domain of GPUs of different cliques: their traffic goes over the NICs"),
        evidence=[each.origin for domains in torn.values() for each in domains.values()],
    )


def _between(
    check: JobCheck[Any], job: Job, shared: Mapping[Domain, Sequence[str]], whole: Mapping[str, Membership]
) -> Finding:
    sizes = sorted({len(hosts) for hosts in shared.values()})
    lone = [hosts[0] for hosts in shared.values() if len(hosts) == 1]
    uneven = len(sizes) > 1 and bool(lone)
    clusters = {uuid for uuid, _ in shared}
    what = "clusters" if len(clusters) > 1 else "cliques of one cluster"
    message = f"the trays of the job are in {plural(len(shared), 'NVLink domain')}: different {what}"
    # A handle of memory means nothing in another domain: who shares it across them took them for one.
    failed = any(event.kind == "cuda" and _HANDLE.search(event.text) for event in job.events)
    if uneven:
        message = f"{hosts_word(lone)} is in another NVLink domain than the trays beside it: different {what}"
    return check.finding(
        Severity.ERROR if failed else Severity.WARNING if uneven or len(clusters) == 1 else Severity.INFO,
        message,
        observed="; ".join(f"cluster {uuid}, clique {clique}: {hosts_word(h)}" for (uuid, clique), h in shared.items()),
        expected="one cluster UUID and one clique on all trays that are to share NVLink",
        fix=(
            *((_PARTITION,) if len(clusters) == 1 else ()),
            "count by cluster and clique together: cliques of different racks have equal numbers",
            "groups that need NVLink belong inside one domain: `topodiag place audit`; or give the job one rack",
        ),
        nodes=lone if uneven else list(whole),
        ranks=ranks_on(job, lone if uneven else list(whole)),
        cost=Cost(text="traffic between domains goes over the NICs"),
        evidence=[whole[hosts[0]].origin for hosts in shared.values()],
        confidence=Confidence.HIGH if not uneven else Confidence.MEDIUM,
    )
