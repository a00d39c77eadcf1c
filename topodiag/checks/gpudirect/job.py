"""GPUDirect RDMA as a job's log shows it: not there, or not used for distance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from topodiag.checks.gpudirect.node import USELESS, host_memory_cost
from topodiag.checks.interface import JobCheck, hosts_in, hosts_word
from topodiag.checks.shared.job import logs
from topodiag.checks.shared.job.text import ask_for, unconnected
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.gpudirect import DMABUF_NCCL, peermem
from topodiag.model.job import Hca, Job
from topodiag.model.job_rings import uses_gdr
from topodiag.model.nccl_versions import read_minor
from topodiag.model.nccl_view import NcclSystem
from topodiag.words.units import fold_runs, grouped, plural

Uses = Mapping[str, Sequence[logs.NetUse]]
"""Connections by host."""


def without_gdr(job: Job) -> tuple[Uses, dict[str, int]]:
    """By host: connections over NET/IB whose receiving side goes without GPUDirect RDMA, and how many were seen.

    Only the receiving side is judged where both are printed: NCCL reads for a send from GPU memory by its own rule
    (NCCL_NET_GDR_READ), and on PCIe machines it does not.
    """
    off: dict[str, list[logs.NetUse]] = {host: [] for host in job.hosts}
    seen: dict[str, int] = defaultdict(int)
    for use in logs.net_uses(job.connections):
        if use.direction != 1 and logs.transport_kind(use.via).startswith("NET/IB"):
            seen[use.host] += use.entries
            if not uses_gdr(use.via) and use.host in off:
                off[use.host].append(use)
    return {host: uses for host, uses in off.items() if uses}, dict(seen)


class GdrOffInLog(JobCheck, id="GDR001", unless=logs.one_node):
    """GDR001 by a job's log: NCCL lists RDMA devices for which GPUDirect RDMA is off."""

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        if logs.only_sockets(job):
            return self.not_applicable(job, "sockets carry the traffic: NET001")
        if job.ranks and all(_shares_memory(rank.bus_id) for rank in job.ranks):
            return self.not_applicable(job, "the memory of these GPUs is the host's: GB10")
        by_plugin = list(self._by_plugin(job))
        if by_plugin:
            return self.with_findings(job, by_plugin)
        listed = logs.hcas_by_host(job)
        if not any(listed.values()) and not (logs.piece(job) and len(job.connections)):
            return self.not_applicable(job, "no RDMA device is listed")
        states = {host: [hca for hca in hcas.values() if hca.gdr is not None] for host, hcas in listed.items()}
        if not any(states.values()):
            without = list(self._without_module(job, listed))
            return self.with_findings(job, without) if without else self._by_connections(job)
        coverage = Coverage(sum(map(bool, states.values())), len(job.hosts), "nodes")
        return self.any_of(job, [self._report(job, states)], coverage)

    def _by_connections(self, job: Job) -> Outcome:
        """Where no line says whether a device has it."""
        off, seen = without_gdr(job)
        coverage = Coverage(len(seen), len(job.hosts), "nodes")
        uneven = self._uneven(job, off, seen)
        if uneven is not None:
            return self.with_findings(job, [uneven], coverage)
        if seen and not off:
            return self.clean(job, "connections use /GDRDMA", coverage)
        return self.unknown(job, f"no line says whether GPUDirect RDMA is enabled for a device; {ask_for(job)}")

    def _without_module(self, job: Job, listed: Mapping[str, Mapping[str, Hca]]) -> Iterator[Finding]:
        """By the nodes' modules, where NCCL is too old for the other way and no connection shows that it has one."""
        minors = [read_minor(version.split("+")[0]) for version in job.nccl_versions]
        if not minors or any(minor is None or minor >= DMABUF_NCCL for minor in minors):
            return
        off, seen = without_gdr(job)
        seen_on = {host for host in seen if host not in off}
        asked = {host: peermem(node) for host, node in job.machines.items() if listed.get(host) and host not in seen_on}
        hosts = [host for host, (there, _) in asked.items() if there is False]
        if hosts:
            yield self.finding(
                self.where(hosts, ranks=logs.ranks_on(job, hosts)),
                "no module in the log",
                f"no peer memory module on {hosts_word(hosts)}, and NCCL {job.nccl_versions[0]} has no other way to"
                " GPUDirect RDMA",
                observed="neither nvidia_peermem nor nv_peer_mem is loaded",
                fix=self._module_steps(job),
                cost=_cost(None),
                evidence=[origin for host in hosts for origin in asked[host][1]],
            )

    def _module_steps(self, job: Job) -> tuple[str, ...]:
        if job.library == "RCCL":
            return self.steps("module of amd")
        return self.steps("module of nvidia", "dmabuf switched off" if _dmabuf_disabled(job) else "", "geforce")

    def _report(self, job: Job, states: Mapping[str, Sequence[Hca]]) -> Finding | None:
        """By what NCCL says of the RDMA devices of each host: those with a known state."""
        off, some = _without_and_with(states)
        if not off:
            return None
        hosts = list(off)
        first = off[hosts[0]]
        view = {system_print.host: system_print.system for system_print in logs.prints(job)}
        systems = [view[host] for host in hosts if host in view]
        near = list(map(_within, systems))
        useless = bool(near) and not any(near)
        fast = any(any(logs.nvlink_gbs(system).values()) for system in systems)
        return self.finding(
            self.where(hosts, ranks=logs.ranks_on(job, hosts), nics=[hca.name for hca in first]),
            "no gdr",
            f"GPUDirect RDMA is off on {hosts_word(hosts)} ({plural(len(first), 'NIC')})"
            + (f" and on on {hosts_word(some)}" if some else "")
            + (" (all too far from the GPUs to use it)" if useless else ""),
            severity=Severity.INFO if useless else Severity.ERROR if fast or some else Severity.WARNING,
            observed=f"GPU Direct RDMA Disabled for {fold_runs([hca.name for hca in first])}",
            fix=self._module_steps(job),
            cost=_cost(view.get(hosts[0]), useless),
            evidence=[
                *(hca.gdr_origin or hca.origin for hcas in off.values() for hca in hcas[:2]),
                *[job.connections.origin(uses[0].first) for uses in without_gdr(job)[0].values()][:2],
            ],
            confidence=Confidence.HIGH if fast or some else Confidence.MEDIUM,
        )

    def _by_plugin(self, job: Job) -> Iterator[Finding]:
        """What the OFI plugin says of its own devices, which NCCL does not list."""
        events = [event for event in job.events if "gdr_off" in event.details]
        if events:
            hosts = hosts_in(events)
            yield self.of_events(
                events,
                "plugin",
                f"the OFI plugin goes without GPUDirect RDMA on {hosts_word(hosts)}, though"
                f" {events[0].details['gdr_off']} has it",
                cost=_cost(None),
                coverage=Coverage(len(hosts), len(job.hosts), "nodes"),
            )

    def _uneven(self, job: Job, off: Uses, seen: dict[str, int]) -> Finding | None:
        """Nodes none of whose receives use it, beside nodes all of whose receives do; None where NCCL said too far."""
        if any(True for _ in logs.named_by(job, "distance", "gdr pair")):
            return None
        without = [host for host, uses in off.items() if sum(use.entries for use in uses) == seen[host]]
        # A node that can read for a send can write for a receive.
        senders = {use.host for use in logs.net_uses(job.connections) if use.direction == 1 and uses_gdr(use.via)}
        seen = {**seen, **dict.fromkeys(senders - {"", *seen}, 1)}
        others = [host for host in seen if host not in off]
        if not without or not others:
            return None
        seen_there = (system_print.system for system_print in logs.prints(job) if system_print.host in without)
        return self.finding(
            self.where(without, ranks=logs.ranks_on(job, without)),
            "gdr on some nodes",
            f"{hosts_word(without)} receive without GPUDirect RDMA, {hosts_word(others)} with it",
            observed=f"via {job.connections.label(off[without[0]][0].first)} on {hosts_word(without)}",
            cost=_cost(next(seen_there, None)),
            evidence=[job.connections.origin(off[host][0].first) for host in without],
            coverage=Coverage(len(without), len(seen), "nodes"),
        )


def _cost(system: NcclSystem | None, useless: bool = False) -> Cost:
    """What host memory leaves of a NIC, by NCCL's print of a machine."""
    if useless:
        return USELESS
    nets, links = (system.of_kind("NET"), system.links) if system is not None else ((), ())
    lanes = (link.gbs for link in links if link.kind == "PCI" and link.a.startswith("CPU/"))
    return host_memory_cost(max((net.speed_gbs or 0.0 for net in nets), default=0.0), max(lanes, default=0.0))


def _without_and_with(states: Mapping[str, Sequence[Hca]]) -> tuple[dict[str, list[Hca]], list[str]]:
    """By host the devices for which it is off, and the hosts all of whose devices have it."""
    off = {host: [hca for hca in hcas if hca.gdr is False] for host, hcas in states.items()}
    some = [host for host, hcas in states.items() if hcas and not off[host]]
    return {host: hcas for host, hcas in off.items() if hcas}, some


def _shares_memory(bus_id: str) -> bool:
    """Whether a GPU is a GB10 of a DGX Spark: on no other machine of ours does one stand in PCI domain 15."""
    return bus_id.lower().startswith(("000f:01:00", "0000000f:01:00"))


def _dmabuf_disabled(job: Job) -> bool:
    given = logs.settings_of(job, "NCCL_DMABUF_ENABLE").get("NCCL_DMABUF_ENABLE", [])
    return any(setting.value == "0" for _, setting in given)


def _within(system: NcclSystem) -> bool:
    """Whether some GPU has a NIC near enough for GPUDirect RDMA, or the print does not say."""
    pairs = product(system.of_kind("GPU"), system.of_kind("NET"))
    kinds = [logs.path_between(system, gpu.name, net.name) for gpu, net in pairs]
    return any(kind is None or kind <= logs.NEAR for kind in kinds) or not kinds or _below_one_switch(system)


def _below_one_switch(system: NcclSystem) -> bool:
    """Whether a GPU and a NIC hang below one PCI switch: without GPUDirect RDMA, NCCL prints such paths as PHB."""
    above = {gpu.parent for gpu in system.of_kind("GPU") if gpu.parent.startswith("PCI/")}
    return any(nic.parent in above for nic in system.of_kind("NIC"))


class GdrTooFarInLog(JobCheck, id="GDR002"):
    """GDR002 by a job's log: connections without /GDRDMA where NCCL said that GPU and NIC are too far apart."""

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        if not logs.multi_node(job) and not (logs.piece(job) and _pairs_of_gpus(job)):
            return self.not_applicable(job, "no traffic between nodes")
        if logs.only_sockets(job):
            return self.not_applicable(job, "sockets carry the traffic: NET001")
        by_level = _by_level(job)
        off, seen = without_gdr(job)
        if not seen:
            return self._by_lines(job, by_level)
        coverage = Coverage(sum(seen.values()), sum(seen.values()), "connections over NET/IB")
        if not off:
            return self.clean(job, "", coverage)
        notes = _said_too_far(job)
        listed = logs.hcas_by_host(job)
        able = {host for host, hcas in listed.items() if any(hca.gdr is not False for hca in hcas.values())}
        hosts = [host for host in off if notes.get(host) and host in able]
        findings = [self._report(job, host, off[host], notes[host], seen[host]) for host in hosts]
        if findings:
            return self.any_of(job, () if by_level else logs.fold(findings), coverage, by_level)
        if all(any(hca.gdr is False for hca in listed.get(host, {}).values()) for host in off):
            return self.clean(job, "GPUDirect RDMA is off altogether: GDR001", coverage)
        return self.unknown(job, f"connections without /GDRDMA, and no line says why; {ask_for(job)}")

    def _by_lines(self, job: Job, by_level: str) -> Outcome:
        """By NCCL's decisions alone, where no connection over NET/IB was seen: a GPU that goes without for each NIC."""
        pairs = _pairs_of_gpus(job)
        if not pairs:
            return self.unknown(job, unconnected(job, "a connection over NET/IB"))
        far = {gpu: decisions for gpu, decisions in pairs.items() if all("limit" in line.details for line in decisions)}
        coverage = Coverage(len(far) or len(pairs), len(pairs), "GPUs that NCCL decided on")
        if by_level or not far:
            return self.clean(job, by_level or "each GPU has a NIC that is near enough", coverage)
        hosts = list(dict.fromkeys(host for host, _ in far))
        first = next(iter(far.values()))[0].details
        finding = self.finding(
            self.where([host for host in hosts if host]),
            "too far by its lines",
            f"{hosts_word(hosts)}: no GPUDirect RDMA for {plural(len(far), 'GPU')}: each NIC that NCCL weighed is too"
            " far away",
            observed=f"distance {first['distance']} where NCCL goes up to {first['limit']}",
            evidence=[decision for decisions in far.values() for decision in decisions[:1]],
        )
        return self.any_of(job, [finding], coverage)

    def _report(self, job: Job, host: str, off: Sequence[logs.NetUse], notes: list[logs.Line], seen: int) -> Finding:
        conns, named, entries = job.connections, notes[0].details, sum(use.entries for use in off)
        far = f"distance {named['distance']} where NCCL goes up to {named['limit']}"
        return self.finding(
            self.where((host,)),
            "too far by connections",
            f"{host}: {plural(entries, 'connection')} over RDMA without GPUDirect: GPU and NIC are too far apart",
            observed=f"via {conns.label(off[0].first)}; {far}",
            evidence=[conns.origin(off[0].first), *notes[:3]],
            coverage=Coverage(entries, seen, "connections of the node"),
        )


def _by_level(job: Job) -> str:
    """Why GPUDirect RDMA stops at a distance: a setting says so; "" without one."""
    levels = logs.settings_of(job, "NCCL_NET_GDR_LEVEL", "NCCL_IB_GDR_LEVEL").values()
    return next((f"{given.name}={given.value} is set: ENV001 judges it" for (_, given), *_ in levels), "")


def _pairs_of_gpus(job: Job) -> dict[tuple[str, str], list[logs.Line]]:
    """By host and GPU, as the line names it, what NCCL decided on each NIC that it weighed: with a distance and the
    farthest that it takes where it goes without GPUDirect RDMA for that."""
    lines = logs.named_by(job, "gpu", "gdr pair")
    decisions = (line for line in lines if "distance" in line.details or line.details["gdr"] != "Disabled")
    return grouped(((line.host, line.details["gpu"]), line) for line in decisions)


def _said_too_far(job: Job) -> dict[str, list[logs.Line]]:
    """By host, the lines with the distances at which NCCL goes without."""
    return grouped(
        (host, line)
        for line in logs.named_by(job, "distance", "gdr pair")
        for host in ([line.host] if line.process >= 0 else job.hosts)
    )
