"""Peer-to-peer or NVLink that is switched off by a setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import JobCheck, ranks_in
from topodiag.checks.p2p.shm import around_p2p, cost_of_detour, switched_off
from topodiag.checks.shared.job import logs
from topodiag.checks.shared.job.text import ask_for
from topodiag.model.finding import Coverage, Finding, Outcome, Severity
from topodiag.model.job import GivenSetting, Job
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_view import NcclSystem
from topodiag.words.units import plural

OFF_NVLINK = "between nvlink connected"


class P2pSwitchedOff(JobCheck, id="P2P002"):
    """P2P002: peer-to-peer between GPUs is switched off

    What it finds
        NCCL_P2P_DISABLE=1, or NCCL_P2P_LEVEL=LOC, in a job with several GPUs on a node; or a driver that refuses
        peer-to-peer between GPUs that NVLink joins.

    Why it matters
        NVLink is then not used at all: 8 H100 go from 360 GB/s to about 40 GB/s through host memory, or over the NICs.
        Often the setting is left over from a search for another fault.

    Evidence it reads
        `NCCL_P2P_DISABLE set by environment to 1`, NCCL_P2P_LEVEL, transports inside the nodes, `P2P is disabled
        between NVLINK connected GPUs`.

    When it stays silent
        One GPU on each node. Where no pair could use P2P anyhow (no NVLink, no common PCIe switch): info.

    How to confirm
        grep -h 'NCCL_P2P' LOGS; env | grep NCCL; cat /etc/nccl.conf ~/.nccl.conf
        grep -ho 'via [A-Z0-9]*/[a-zA-Z]*' LOGS | sort | uniq -c

    How to fix
        Unset it. If the job hangs without it, look for ACS or an IOMMU in the way (PCI004) instead.

    References
        NCCL environment, NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; NCCL src/graph/paths.cc v2.30.
    """

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        findings = [*self._refused(job)]
        several = logs.ranks_per_node(job) > 1
        if not findings and not several:
            return self.not_applicable(job, "one rank on each node")
        if several and (off := switched_off(job)):
            findings.append(self._by_setting(job, off))
        seen = job.subsystems & {"ENV", "INIT", "GRAPH"}
        return self.any_of(job, findings, unknown="" if seen else f"no settings were seen; {ask_for(job)}")

    def _refused(self, job: Job) -> Iterator[Finding]:
        lines = (*logs.said_by(job, "p2p off"), *job.events)
        bad = [line for line in lines if OFF_NVLINK in line.text.lower()]
        if bad:
            yield self.of_events(
                bad,
                "refused by nccl",
                f"the driver refuses peer-to-peer between GPUs that NVLink joins ({plural(len(bad), 'line')})",
                self.where(ranks=ranks_in(bad)),
                cost=cost_of_detour(job, list(job.hosts)),
            )

    def _by_setting(self, job: Job, off: list[tuple[int, GivenSetting]]) -> Finding:
        given = off[0][1]
        hosts = list(dict.fromkeys(job.processes[number].host for number, _ in off))
        view = [system_print.system for system_print in logs.prints(job) if system_print.host in hosts]
        nvlink = any(any(logs.nvlink_gbs(system).values()) for system in view)
        near = nvlink or any(_near_pair(system) for system in view)
        conns = job.connections
        around = (around_p2p(batch, lambda via: logs.transport_kind(via) != "P2P") for batch in conns.batches())
        first = {talk.first: talk.kind for talks in around for talk in talks}
        severity = Severity.ERROR if nvlink else Severity.WARNING if near or not view else Severity.INFO
        used = ", ".join(sorted(set(first.values())))
        return self.finding(
            self.where(hosts, ranks=logs.world_ranks(job, [number for number, _ in off]) or logs.ranks_on(job, hosts)),
            "switched off",
            f"{given.name}={given.value} switches peer-to-peer off"
            + (": NVLink is not used" if nvlink else "" if severity > Severity.INFO else ", which no pair could use"),
            severity=severity,
            observed=f"{given.name}={given.value}" + (f"; inside the nodes: {used}" if used else ""),
            fix=self.steps("without the setting", name=given.name),
            cost=cost_of_detour(job, hosts),
            evidence=[given, *(conns.origin(at) for at in list(first)[:2])],
            coverage=Coverage(len(off), len(job.processes), "processes"),
            settings=((given.name, None),),
        )


def _near_pair(system: NcclSystem) -> bool:
    gpus = [gpu.name for gpu in system.of_kind("GPU")]
    kinds = [logs.path_between(system, a, b) for a in gpus for b in gpus if a < b]
    return any(kind is not None and PathType.LOC < kind <= logs.NEAR for kind in kinds)
