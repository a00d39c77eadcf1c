"""Settings in force as logs show them: those that cost bandwidth, are misread, or that no NCCL reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from topodiag.checks.env.conf_file import misread
from topodiag.checks.env.node import BOARD, NOT_JUDGED
from topodiag.checks.env.rules import Rule, broken, undecided
from topodiag.checks.interface import MAX_EVIDENCE, Advice, JobCheck
from topodiag.checks.shared import nccl_variables
from topodiag.checks.shared.job.logs import multi_node, prints, prints_settings, ranks_per_node, said_by
from topodiag.checks.shared.job.text import ask_for, failed
from topodiag.checks.shared.phrases import phrases
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import GivenSetting, Job, Process
from topodiag.model.nccl_view import GPU_LINKS
from topodiag.model.provenance import Origin
from topodiag.words.own_data import own_data
from topodiag.words.units import few, grouped

HOPPER_NVLINK_GBS = 300.0
"""NVLink path of a GPU, GB/s in NCCL's print, above which it is Hopper or later, which have NVLink SHARP: 18 links of
20.6 make 370 there, 12 of 20 make 240 on A100 (src/graph/topo.h v2.28)."""


class LogMachines:
    """What a job's log shows of its machines, as far as the rules ask."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._prints = tuple(prints(job))
        nodes = job.world.nodes if job.world is not None and multi_node(job) else 0
        self.several_nodes = max(len(job.hosts), nodes) > 1
        self._ranks_per_host = ranks_per_node(job)
        self.unknown_ranks = not self._ranks_per_host
        self.several_gpus = self._ranks_per_host > 1
        self.whole_board = self._ranks_per_host >= BOARD

    def lacks(self, condition: str) -> bool:
        """Whether the log does not show what a condition is about: machines, networks, connections, or NVLinks."""
        name = condition.removeprefix("not ")
        if name == "sockets" and self.several_nodes:
            return not any(process.network for process in self.job.processes)
        if name in ("no_gdr", "network_inside"):
            return not self._vias
        if name in ("nvlink", "nvswitch", "nvls"):
            return not self._prints and self._ranks_per_host != 1
        return self.unseen

    @cached_property
    def _nvlink_gbs(self) -> float:
        """The best path between two GPUs over NVLink, GB/s, or the widest NVLink; 0 if none was printed."""
        links = [link for system_print in self._prints for link in system_print.system.links]
        return max((link.gbs for link in links if link.kind in GPU_LINKS and "CPU" not in link.b), default=0.0)

    @cached_property
    def nvlink(self) -> bool:
        return self._nvlink_gbs > 0

    @cached_property
    def nvls(self) -> bool:
        return self.nvswitch and self._nvlink_gbs > HOPPER_NVLINK_GBS

    @cached_property
    def nvswitch(self) -> bool:
        switches = any(system_print.system.of_kind("NVS") for system_print in self._prints)
        return self.nvlink and self._ranks_per_host > 2 and switches

    @cached_property
    def unseen(self) -> bool:
        """Whether nothing tells what the machines are: no rank, no print, no connection."""
        return not self.job.ranks and not self._vias and not self._prints

    @cached_property
    def sockets(self) -> bool:
        """Whether processes that have others on further nodes to talk to do it over sockets."""
        return self.several_nodes and any(process.network.lower() == "socket" for process in self.job.processes)

    @cached_property
    def rdma(self) -> bool:
        """Whether some process lists an RDMA device."""
        nets = (net for system_print in self._prints for net in system_print.system.of_kind("NET"))
        return any(process.hcas for process in self.job.processes) or any(net.guid.strip("0x") for net in nets)

    @cached_property
    def _vias(self) -> frozenset[str]:
        connections = self.job.connections
        return frozenset(connections.vias[at] for at in np.unique(connections.flows.via).tolist())

    @cached_property
    def no_gdr(self) -> bool:
        """Whether data between nodes goes over RDMA NICs, and never by GPUDirect."""
        net = [via for via in self._vias if via.startswith("NET/") and not via.startswith("NET/Socket")]
        return bool(net) and not any("GDRDMA" in via for via in net)

    @cached_property
    def network_inside(self) -> bool:
        """Whether GPUs of one node talk over the network."""
        refused = not self.several_nodes and any(True for _ in said_by(self.job, "p2p off"))
        if refused and any(via.startswith("NET/") for via in self._vias):
            return True
        net = [at for at, via in enumerate(self.job.connections.vias) if via.startswith("NET/")]
        flows = self.job.connections.flows
        return bool(((flows.host >= 0) & (flows.host == flows.peer_host) & np.isin(flows.via, net)).any())


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """One variable with one value, and the processes that have it."""

    name: str
    value: str
    processes: tuple[int, ...]
    given: GivenSetting

    def place(self, job: Job) -> str:
        count = len(job.processes)
        return f"{len(self.processes)} of {count} {'process' if count == 1 else 'processes'}"


def in_force(job: Job, *how: str) -> list[SettingInForce]:
    """Every distinct NAME=value that processes printed, of these kinds of giving."""
    groups = grouped(
        ((given.name, given.value), (number, given))
        for number, process in enumerate(job.processes)
        for given in process.settings.values()
        if given.how in how
    )
    return [
        SettingInForce(*setting, tuple(number for number, _ in pairs), pairs[0][1])
        for setting, pairs in sorted(groups.items(), key=lambda item: item[0])
    ]


class SettingsInLog(JobCheck):
    """What the checks of single settings share: unknown without settings, one finding per value."""

    def report(self, job: Job, force: SettingInForce, advice: Advice, text: str, meant: str | None = None) -> Finding:
        """`meant`: the value that the setting should have, None where it should not be there."""
        return self.finding(
            self.where_of(job, force.processes),
            advice,
            f"{text} ({force.place(job)})",
            observed=f"{force.name}={force.value[:80]}",
            evidence=[force.given],
            coverage=Coverage(len(force.processes), len(job.processes), "processes"),
            settings=((force.name, meant),),
        )

    def answer(self, job: Job, findings: Iterable[Finding]) -> Outcome:
        logged = "ENV" in job.subsystems or any(map(prints_settings, job.processes))
        return self.any_of(job, findings, unknown="" if logged else f"settings were not logged: {ask_for(job)}")


class CostlySettingInLog(SettingsInLog, id="ENV001"):
    """ENV001 by what a job's log prints of its settings and of its machines."""

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        shown, given = LogMachines(job), in_force(job, "environment", "command")
        costly = [(one, rule) for one in given for rule in broken("job", shown, one.name, one.value)]
        findings = [self._costs(job, *pair) for pair in costly]
        suspects = [one for one in in_force(job, "environment") if one.name in _FAILURES and failed(job)]
        ended = [finding for force in suspects for finding in self._failed(job, force)]
        findings = [*ended, *findings, *self._by_rccl(job)]
        unsure = [force.name for force in given if undecided("job", shown, force.name, force.value)]
        if unsure and not findings:
            return self.unknown(job, NOT_JUDGED.format(few(unsure, 4)))
        return self.answer(job, findings)

    def _failed(self, job: Job, force: SettingInForce) -> Iterator[Finding]:
        """A setting that the job's own lines show to have failed. Only of a job that failed: where NCCL went on with
        something slower, NET001 tells of that, and of the settings."""
        fact = _FAILURES[force.name]
        what = own_data("checks/env/rules")["failures"][fact]
        lines = {at: _shown(job, job.processes[at], fact) for at in force.processes}
        shown = {at: line for at, line in lines.items() if line is not None}
        if not shown or (force.name == "NCCL_NET" and _device_fails(job, tuple(shown))):
            return  # or the network is there, and its device is not
        own = replace(force, processes=tuple(shown), given=job.processes[min(shown)].settings[force.name])
        finding = self.report(job, own, self.advice(fact), f"{force.name}={force.value[:60]} {what}")
        yield replace(finding, evidence=tuple(dict.fromkeys((*finding.evidence, *shown.values())))[:MAX_EVIDENCE])

    def _by_rccl(self, job: Job) -> Iterator[Finding]:
        """What RCCL itself finds amiss in the settings of a node, of which NCCL's logs say nothing."""
        for phrase in phrases("advised_by_rccl"):
            events = [event for event in job.events if phrase.words.search(event.text)]
            if events:
                yield self.of_events(
                    events, "advised by rccl", f"RCCL advises {phrase.says}", expected=phrase.says, fix=(phrase.fix,)
                )

    def _costs(self, job: Job, force: SettingInForce, rule: Rule) -> Finding:
        advice = rule.advice
        if force.given.how == "command":
            advice = replace(advice, confidence=min(advice.confidence, Confidence.MEDIUM))
        return self.report(job, force, advice, f"{force.name}={force.value[:60]}: {rule.what}")


class MisreadSettingInLog(SettingsInLog, id="ENV002"):
    """ENV002 by values that show how NCCL read them: blanks or quotes that became part of them, values it refused."""

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        findings = []
        for force in in_force(job, "environment", "application", "invalid"):
            what, meant = misread(f"{force.name}={force.value}") or ("", "")
            if force.given.how == "invalid":
                what, meant = "NCCL refuses the value and goes on with its default", ""
            if what:
                fix = f"write {meant}, in nccl.conf too" if meant else "correct the value"
                cost = Cost(text="the setting that was meant is not in force")
                advice = Advice(expected=meant or "a value that NCCL accepts", fix=(fix,), cost=cost)
                message = f"{force.name}={force.value[:60]}: {what}"
                findings.append(self.report(job, force, advice, message, meant.partition("=")[2] or None))
        return self.answer(job, [*findings, *self._refused(job)])

    def _refused(self, job: Job) -> Iterator[Finding]:
        """Values that NCCL refuses in a warning of its own."""
        for entry in phrases("refused_value"):
            events = [event for event in job.events if event.level == "WARN" and entry.words.search(event.text)]
            if events:
                yield self.of_events(events, "refused value", entry.says, expected=entry.expected, fix=(entry.fix,))


class UnknownSettingInLog(SettingsInLog, id="ENV003"):
    """ENV003 by the names that a job's log prints: old ones only. NCCL prints a setting where it reads it, so that any
    name in a log is one that this library knows, a newer NCCL or a fork."""

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        findings = []
        for force in in_force(job, "environment", "command"):
            name = force.name
            if not name.startswith("NCCL_") or nccl_variables.is_foreign(name):
                continue
            old = nccl_variables.renamed(name)
            if old is not None:
                fix = f"use {old.now}" if old.now else f"remove {name}"
                cost = Cost(text="none while this NCCL reads it")
                advice = Advice(Severity.INFO, expected=old.now or "no such setting", fix=(fix,), cost=cost)
                findings.append(self.report(job, force, advice, f"{name} is {old.what}"))
        return self.answer(job, findings)


# Settings that made a job fail, each with the line by which NCCL says so.


_FAILURES = {
    "NCCL_IB_HCA": "no device", "NCCL_NET": "no network",
    **dict.fromkeys(("NCCL_ALGO", "NCCL_PROTO", "NCCL_SYM_KERNEL"), "no algorithm"),
}  # fmt: skip
"""What a line of the process says of it, which is the name of its advice."""


def _shown(job: Job, process: Process, fact: str) -> Origin | None:
    """The line of this process that names the fact; None where it has none."""
    if fact == "no device":
        return _no_device(process)
    own = (event for event in job.events if (event.host, event.pid) == (process.host, process.pid))
    return next((event.origin for event in own if fact in event.details), None)


def _no_device(process: Process) -> Origin | None:
    given = process.settings["NCCL_IB_HCA"].value.strip()
    if not given or given.startswith("^") or process.hcas:
        return None
    return next((message.origin for message in process.said("no hca")), None)


def _device_fails(job: Job, processes: Sequence[int]) -> bool:
    return any("NCCL_IB_HCA" in job.processes[at].settings and _no_device(job.processes[at]) for at in processes)
