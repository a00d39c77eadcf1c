"""Faults of a device, a limit or the storage that a job's own output names: NCCL, CUDA, torch, UCX or a launcher says
it. What is said of each is data: job_faults.toml."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from topodiag.checks.interface import Advice, JobCheck, advice_of, hosts_word, quoted, rank_word, ranks_in
from topodiag.checks.shared.job.text import launched_on, outlived, survived
from topodiag.model.finding import Cost, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.words.own_data import own_data
from topodiag.words.units import grouped, plural


@cache
def named_faults() -> dict[tuple[str, str], tuple[str, Advice]]:
    """The message and the advice by the id of the check and the name of the fault, in the order of the file."""
    faults = ({"severity": "error", **entry} for entry in own_data("checks/advice/job_faults")["fault"])
    return {(fault["check"], fault["fault"]): (fault["message"], advice_of(fault)) for fault in faults}


class FaultInLog(JobCheck):
    """A fault that a job's lines name (the field `fault` of an event), said by job_faults.toml."""

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        fault, events = self.named(judged)
        if not events:
            unnamed = "no line of the job names such a fault: `topodiag scan` of the node does"
            return self.not_applicable(judged, unnamed)
        return self.with_findings(judged, [self._finding(judged, *named_faults()[self.id, fault], events)])

    def named(self, job: Job) -> tuple[str, Sequence[Event]]:
        """The first fault of this check that lines of a job name, with these lines; none where no line does."""
        by_fault = grouped((event.details.get("fault", ""), event) for event in job.events)
        own = (fault for check, fault in named_faults() if check == self.id and fault in by_fault)
        fault = next(own, "")
        return fault, by_fault[fault] if fault else ()

    def _finding(self, job: Job, message: str, advice: Advice, events: Sequence[Event]) -> Finding:
        """The fault that these lines name, in the order of the log."""
        ranks = ranks_in(events)
        hosts = _hosts(job, events)
        at = hosts_word(hosts) or (rank_word(ranks) if ranks else "a node")
        severity = self._severity_of(job, events, advice.severity)
        return self.of_events(
            events,
            advice,
            f"{at}: {message}",
            self.where(hosts, ranks=ranks),
            severity=severity,
            observed=quoted(events[0].text, 200) + (f"; {plural(len(events), 'line')}" if events[1:] else ""),
            cost=None if severity is advice.severity else Cost(text="it goes on without what it reads or writes there"),
        )

    def works_without(self, job: Job) -> bool:
        """Whether a job may do its work without what such lines miss."""
        return False

    def _severity_of(self, job: Job, events: Sequence[Event], usual: Severity) -> Severity:
        """How bad what these lines name is: less where the job outlived it."""
        if self.works_without(job) and outlived(job, (event.origin for event in events)):
            return Severity.INFO
        return Severity.WARNING if all(survived(job, event) for event in events) else usual


def _hosts(job: Job, events: Sequence[Event]) -> list[str]:
    """Where it was said, or where its rank runs."""
    named = (
        event.details.get("host") or event.host or (job.by_rank[event.rank].host if event.rank in job.by_rank else "")
        for event in events
    )
    hosts = list(dict.fromkeys(host for host in named if host))
    by_launcher = "" if hosts or len({event.rank for event in events}) > 1 else launched_on(job, events[0].rank)
    return hosts or ([by_launcher] if by_launcher else [])
