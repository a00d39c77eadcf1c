"""Settings in force as logs show them: those that cost bandwidth, are misread, or that no NCCL reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Never

from topodiag.checks.interface import MAX_EVIDENCE, JobCheck, OneStep
from topodiag.checks.job.evidence import prints_settings
from topodiag.checks.job.failed_settings import REFUSALS, FailedSetting, failed_settings
from topodiag.checks.job.rules import JOB_RULES, OF_RCCL, LogMachines
from topodiag.checks.job.text import ask_for
from topodiag.checks.shared import nccl_variables
from topodiag.checks.shared.setting_rules import Rule
from topodiag.checks.shared.words import quoted
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Given, Job


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """One variable with one value, and the processes that have it."""

    name: str
    value: str
    processes: tuple[int, ...]
    given: Given

    def where(self, job: Job) -> tuple[list[str], list[int]]:
        rank_of = {rank.process: rank.rank for rank in job.ranks}
        hosts = list(dict.fromkeys(job.processes[number].host for number in self.processes))
        return hosts, sorted({rank_of[number] for number in self.processes if number in rank_of})

    def place(self, job: Job) -> str:
        count = len(job.processes)
        return f"{len(self.processes)} of {count} {'process' if count == 1 else 'processes'}"


def in_force(job: Job, *how: str) -> list[SettingInForce]:
    """Every distinct NAME=value that processes printed, of these kinds of giving."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    first: dict[tuple[str, str], Given] = {}
    for number, process in enumerate(job.processes):
        for given in process.settings.values():
            if given.how in how:
                groups[given.name, given.value].append(number)
                first.setdefault((given.name, given.value), given)
    return [SettingInForce(name, value, tuple(numbers), first[name, value])
            for (name, value), numbers in sorted(groups.items())]  # fmt: skip


class SettingsInLog(OneStep[Job], JobCheck[Never]):
    """What the checks of single settings share: unknown without settings, one finding per value."""

    def report(self, job: Job, each: SettingInForce, severity: Severity, words: tuple[str, str, str, str],
               sure: Confidence = Confidence.HIGH, *, meant: str | None = None) -> Finding:  # fmt: skip
        """`meant`: the value that the setting should have, None where it should not be there."""
        message, expected, fix, cost = words
        hosts, ranks = each.where(job)
        return self.finding(
            severity,
            f"{message} ({each.place(job)})",
            observed=f"{each.name}={each.value[:80]}",
            expected=expected,
            fix=(fix,),
            nodes=hosts,
            ranks=ranks,
            cost=Cost(text=cost),
            evidence=[each.given.origin],
            coverage=Coverage(len(each.processes), len(job.processes), "processes"),
            confidence=sure,
            settings=((each.name, meant),),
        )

    def answer(self, job: Job, found: Sequence[Finding]) -> Outcome:
        if found:
            return self.found(job, found)
        if "ENV" not in job.subsystems and not any(map(prints_settings, job.processes)):
            return self.unknown(job, f"settings were not logged: {ask_for(job)}")
        return self.clean(job)


class CostlySettingInLog(SettingsInLog):
    """ENV001 by what a job's log prints of its settings and of its machines."""

    id = "ENV001"
    title = "a setting that costs bandwidth or disables a feature"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        shown = LogMachines(job)
        found = [
            self._costs(job, each, rule)
            for each in in_force(job, "environment", "command")
            for rule in JOB_RULES
            if rule.name == each.name and rule.applies(each.value, shown)
        ]
        ended = [self._failed(job, each) for each in failed_settings(job)]
        return self.answer(job, [*ended, *found, *self._by_rccl(job)])

    def _failed(self, job: Job, each: FailedSetting) -> Finding:
        """A setting that NCCL's own lines show to have failed."""
        force = SettingInForce(each.name, each.value, each.processes, each.given)
        words = (f"{each.name}={each.value[:60]} {each.what}", each.expected, each.fix, "the job fails")
        made = self.report(job, force, each.severity, words, each.sure)
        return replace(made, evidence=tuple(dict.fromkeys((*made.evidence, *each.shown)))[:MAX_EVIDENCE])

    def _by_rccl(self, job: Job) -> list[Finding]:
        """What RCCL itself finds amiss in the settings of a node, of which NCCL's logs say nothing."""
        made = []
        for pattern, setting, fix in OF_RCCL:
            told = [event for event in job.events if pattern.search(event.text)]
            if told:
                made.append(
                    self.of_events(
                        told,
                        Severity.INFO,
                        f"RCCL advises {setting}",
                        observed=quoted(told[0].text),
                        expected=setting,
                        fix=(fix,),
                        cost=Cost(text="by RCCL: less performance, its variation, or a hang"),
                        confidence=Confidence.MEDIUM,
                    )
                )
        return made

    def _costs(self, job: Job, each: SettingInForce, rule: Rule[LogMachines]) -> Finding:
        words = (f"{each.name}={each.value[:60]}: {rule.what}", f"{each.name} not set", rule.fix, rule.what)
        sure = min(rule.confidence, Confidence.MEDIUM) if each.given.how == "command" else rule.confidence
        return self.report(job, each, rule.severity, words, sure)


class MisreadSettingInLog(SettingsInLog):
    """ENV002 by values that show how NCCL read them: blanks or quotes that became part of them, values it refused."""

    id = "ENV002"
    title = "an nccl.conf line that NCCL does not read as meant"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        found = []
        for each in in_force(job, "environment", "application", "invalid"):
            value = each.value
            if each.given.how == "invalid":
                what, meant = "NCCL refuses the value and goes on with its default", "a value that NCCL accepts"
            elif value[:1].isspace() and value.strip():
                what, meant = "a blank became part of the value", value.strip()
            elif value[:1] in ("'", '"') or value[-1:] in ("'", '"'):
                what, meant = "quotes became part of the value", value.strip().strip("'\"")
            elif " #" in value:
                what, meant = "a comment became part of the value", value.split(" #", 1)[0].strip()
            else:
                continue
            fix = "correct the value" if each.given.how == "invalid" else f"write {each.name}={meant}, in nccl.conf too"
            words = (
                f"{each.name}={value[:60]}: {what}",
                meant or "no value",
                fix,
                "the setting that was meant is not in force",
            )
            value_meant = meant if meant and each.given.how != "invalid" else None
            found.append(self.report(job, each, Severity.WARNING, words, meant=value_meant))
        return self.answer(job, [*found, *self._refused(job)])

    def _refused(self, job: Job) -> Iterator[Finding]:
        """Values that NCCL refuses in a warning of its own."""
        for refusal in REFUSALS:
            told = [event for event in job.events if event.level == "WARN" and refusal.words.search(event.text)]
            if told:
                yield self.of_events(
                    told,
                    Severity.WARNING,
                    f"{refusal.name}: {refusal.what}",
                    observed=quoted(told[0].text),
                    expected=refusal.expected,
                    fix=(refusal.fix,),
                    cost=Cost(text="NCCL does not start, or goes on without what was meant"),
                )


class UnknownSettingInLog(SettingsInLog):
    """ENV003 by the names that a job's log prints: old ones only. NCCL prints a setting where it reads it, so that any
    name in a log is one that this library knows, a newer NCCL or a fork."""

    id = "ENV003"
    title = "an unknown, deprecated or misspelt NCCL variable"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        found = []
        for each in in_force(job, "environment", "command"):
            name = each.name
            if not name.startswith("NCCL_") or nccl_variables.is_foreign(name):
                continue
            old = nccl_variables.renamed(name)
            if old is not None:
                fix = f"use {old.now}" if old.now else f"remove {name}"
                words = (f"{name} is {old.what}", old.now or "no such setting", fix, "none while this NCCL reads it")
                found.append(self.report(job, each, Severity.INFO, words))
        return self.answer(job, found)
