"""Settings in force as logs show them: those that cost bandwidth, are misread, or that no NCCL reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from topodiag.checks.env.conf_file import misread
from topodiag.checks.env.job_machine import LogMachines
from topodiag.checks.env.node import NOT_JUDGED
from topodiag.checks.env.rules import Rule, broken, undecided
from topodiag.checks.interface import MAX_EVIDENCE, Advice, JobCheck
from topodiag.checks.shared import nccl_variables
from topodiag.checks.shared.job.logs import prints_settings
from topodiag.checks.shared.job.text import ask_for, failed
from topodiag.checks.shared.phrases import phrases
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import GivenSetting, Job, Process
from topodiag.model.provenance import Origin
from topodiag.words.units import few, grouped


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

    def report(
        self, job: Job, force: SettingInForce, advice: Advice, message: str, meant: str | None = None
    ) -> Finding:
        """`meant`: the value that the setting should have, None where it should not be there."""
        return self.finding(
            self.where_of(job, force.processes),
            advice,
            f"{message} ({force.place(job)})",
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
        fact, what = _FAILURES[force.name]
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
        for refusal in phrases("refused_value"):
            events = [event for event in job.events if event.level == "WARN" and refusal.words.search(event.text)]
            if events:
                yield self.of_events(
                    events, "refused value", refusal.says, expected=refusal.expected, fix=(refusal.fix,)
                )


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


_NO_ALGORITHM = "no algorithm", "leaves no algorithm for an operation of this job"
_FAILURES = {
    "NCCL_IB_HCA": ("no device", "leaves NCCL without an RDMA device: no such name, or none in the container"),
    "NCCL_ALGO": _NO_ALGORITHM,
    "NCCL_PROTO": _NO_ALGORITHM,
    "NCCL_SYM_KERNEL": _NO_ALGORITHM,
    "NCCL_NET": ("no network", "asks for a network that does not come up"),
}
"""What a line of the process says of it, which is the name of its advice, and in words."""


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
