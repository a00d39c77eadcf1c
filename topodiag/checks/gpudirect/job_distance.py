"""GPUDirect RDMA that is not used for distance, as a job's log shows it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from topodiag.checks.gpudirect.job import WithoutGdr, without_gdr
from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.job.evidence import (
    fold,
    hcas_by_host,
    multi_node,
    named_by,
    only_sockets,
    piece,
    settings_of,
)
from topodiag.checks.shared.job.text import NET, ask_for, unconnected
from topodiag.checks.words import hosts_word
from topodiag.lazy import dataclass
from topodiag.model.finding import Coverage, Finding, Outcome
from topodiag.model.job import Hca, Job
from topodiag.model.provenance import Origin
from topodiag.words.fold import grouped, plural


class GdrTooFarInLog(JobCheck):
    """GDR002 by a job's log: connections without /GDRDMA where NCCL said that GPU and NIC are too far apart."""

    id = "GDR002"

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        if not multi_node(job) and not (piece(job) and _pairs_of_gpus(job)):
            return self.not_applicable(job, "no traffic between nodes")
        if only_sockets(job):
            return self.not_applicable(job, "sockets carry the traffic: NET001")
        off, seen = without_gdr(job)
        if not seen:
            return self._by_lines(job)
        coverage = Coverage(sum(seen.values()), sum(seen.values()), "connections over NET/IB")
        if not off:
            return self.clean(job, "", coverage)
        notes = _said_too_far(job)
        listed = hcas_by_host(job)
        by_setting = settings_of(job, "NCCL_NET_GDR_LEVEL", "NCCL_IB_GDR_LEVEL")
        able = {host for host, hcas in listed.items() if any(hca.gdr is not False for hca in hcas.values())}
        hosts = [host for host in off if notes.get(host) and host in able]
        findings = [self._report(job, host, off[host], notes[host], seen[host]) for host in hosts]
        if findings:
            if by_setting:
                given = next(iter(by_setting.values()))[0][1]
                return self.clean(job, f"{given.name}={given.value} is set: ENV001 judges it", coverage)
            return self.with_findings(job, fold(findings), coverage)
        if all(_lists_it_off(listed.get(host, {})) for host in off):
            return self.clean(job, "GPUDirect RDMA is off altogether: GDR001", coverage)
        return self.unknown(job, f"connections without /GDRDMA, and no line says why; {ask_for(job, *NET)}")

    def _by_lines(self, job: Job) -> Outcome:
        """By NCCL's decisions alone, where no connection over NET/IB was seen: a GPU that goes without for each NIC."""
        pairs = _pairs_of_gpus(job)
        if not pairs:
            return self.unknown(job, unconnected(job, "a connection over NET/IB"))
        far = {gpu: decisions for gpu, decisions in pairs.items() if all(decision.limit for decision in decisions)}
        coverage = Coverage(len(far) or len(pairs), len(pairs), "GPUs that NCCL decided on")
        by_setting = settings_of(job, "NCCL_NET_GDR_LEVEL", "NCCL_IB_GDR_LEVEL")
        if by_setting:
            given = next(iter(by_setting.values()))[0][1]
            return self.clean(job, f"{given.name}={given.value} is set: ENV001 judges it", coverage)
        if not far:
            return self.clean(job, "each GPU has a NIC that is near enough", coverage)
        hosts = list(dict.fromkeys(host for host, _ in far))
        first = next(iter(far.values()))[0]
        finding = self.finding(
            self.where([host for host in hosts if host]),
            "too far by its lines",
            f"{hosts_word(hosts)}: no GPUDirect RDMA for {plural(len(far), 'GPU')}: each NIC that NCCL weighed is too"
            " far away",
            observed=f"distance {first.distance} where NCCL goes up to {first.limit}",
            evidence=[decision.origin for decisions in far.values() for decision in decisions[:1]],
        )
        return self.any_of(job, [finding], coverage)

    def _report(
        self, job: Job, host: str, off: WithoutGdr, notes: list[tuple[str, str, Origin | None]], seen: int
    ) -> Finding:
        conns = job.connections
        distance, limit, _ = notes[0]
        return self.finding(
            self.where((host,)),
            "too far by connections",
            f"{host}: {plural(off.entries, 'connection')} over RDMA without GPUDirect: GPU and NIC are too far apart",
            observed=f"via {conns.label(off.first)}; distance {distance} where NCCL goes up to {limit}",
            evidence=[conns.origin(off.first), *(where for _, _, where in notes[:3])],
            coverage=Coverage(off.entries, seen, "connections of the node"),
        )


@dataclass(frozen=True, slots=True)
class PairDecision:
    """What NCCL decided on a GPU and a NIC: the distance and the farthest that it takes, both "" where it goes with
    GPUDirect RDMA."""

    distance: str
    limit: str
    origin: Origin | None


def _pairs_of_gpus(job: Job) -> dict[tuple[str, str], list[PairDecision]]:
    """By host and GPU, as the line names it, what NCCL decided on each NIC that it weighed."""
    decisions: dict[tuple[str, str], list[PairDecision]] = defaultdict(list)
    for number, named, where in named_by(job, "gpu", "gdr pair"):
        if "distance" not in named and named["gdr"] == "Disabled":
            continue
        decision = PairDecision(named.get("distance", ""), named.get("limit", ""), where)
        decisions[job.processes[number].host if number >= 0 else "", named["gpu"]].append(decision)
    return decisions


def _said_too_far(job: Job) -> dict[str, list[tuple[str, str, Origin | None]]]:
    """By host, the distances at which NCCL goes without, the farthest that it takes, and the line."""
    return grouped(
        (host, (named["distance"], named["limit"], where))
        for number, named, where in named_by(job, "distance", "gdr pair")
        for host in ([job.processes[number].host] if number >= 0 else job.hosts)
    )


def _lists_it_off(hcas: Mapping[str, Hca]) -> bool:
    return any(hca.gdr is False for hca in hcas.values())
