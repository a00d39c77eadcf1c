"""What rules of the verdict ask of a case: who shares a node or a job with whom, and what the first error was."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from topodiag.lazy import regex
from topodiag.model.finding import Finding
from topodiag.model.maker import dialect_of, makers_of_all
from topodiag.model.result import Case
from topodiag.words.dialect import AMD, NVIDIA, Dialect, Maker
from topodiag.words.hosts import short_name
from topodiag.words.units import grouped

if TYPE_CHECKING:
    from topodiag.model.job import Event, Job, Process
    from topodiag.model.node import Node


class Scene:
    """One case, as rules look at it. Hosts are compared by the identity of the case, and by their short names where it
    is silent: one source says `n1`, another `n1.site`, a third the name of a pod. A host without a name is unknown,
    and unknown is no contradiction."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._nodes: dict[int, tuple[Finding, frozenset[str]]] = {}

    def hosts(self, names: Iterable[str]) -> frozenset[str]:
        """The machines of these names, each by the short form of what the case calls it."""
        name = self.case.identity.name
        return frozenset(short_name(name(word)) for word in names if word)

    def host(self, name: str) -> str:
        """The machine of this name, as `hosts` calls it."""
        return short_name(self.case.identity.name(name))

    @cached_property
    def captures(self) -> list[Node]:
        """The captures that show a machine: not rows in texts of programs, which name none and say nothing of one."""
        return [node for node in self.case.nodes if not node.nameless or _shows_machine(node)]

    @cached_property
    def captured(self) -> frozenset[str]:
        """The machines that have a capture."""
        return self.hosts(node.host for node in self.captures)

    @cached_property
    def machines(self) -> frozenset[str]:
        """All machines that the jobs or the captures name."""
        return self.captured | self.hosts(host for job in self.case.jobs for host in job.hosts)

    @cached_property
    def makers(self) -> frozenset[Maker]:
        """Whose GPUs the evidence speaks of."""
        return makers_of_all(self.case.nodes, self.case.jobs, self.case.runs)

    def dialect(self, finding: Finding | None = None) -> Dialect:
        """In whose words a finding is spoken of: by the nodes and jobs that it names, else by the whole case."""
        if self.makers == {Maker.AMD}:
            return AMD
        if finding is None or Maker.AMD not in self.makers:
            return NVIDIA
        nodes = self.nodes(finding)
        of = [dialect_of(node) for node in self.case.nodes if self.host(node.host) in nodes]
        of += [dialect_of(job) for job in self.case.jobs if job.name in finding.where.jobs]
        return AMD if of and all(dialect is AMD for dialect in of) else NVIDIA

    @cached_property
    def processes(self) -> dict[str, list[Process]]:
        """Processes of all jobs by machine."""
        return grouped((self.host(process.host), process) for job in self.case.jobs for process in job.processes)

    def nodes(self, finding: Finding) -> frozenset[str]:
        """The machines of the nodes that a finding names."""
        known = self._nodes.get(id(finding))
        if known is None or known[0] is not finding:
            known = self._nodes[id(finding)] = (finding, self.hosts(finding.where.nodes))
        return known[1]

    def _machines(self, finding: Finding) -> frozenset[str]:
        """The machines of the nodes that a finding names, without one that no text names: it may be any of a job's."""
        return self.nodes(finding) - self._nameless

    @cached_property
    def _nameless(self) -> frozenset[str]:
        """The machine of outputs that name no host. Where a case has several, they are told apart by their files;
        a file that bears the name of a job's host is that host's."""
        nodes = self.case.nodes
        if len(nodes) != 1 or not nodes[0].nameless:
            return frozenset()
        return self.hosts([nodes[0].host]).difference(*self.hosts_of_jobs.values())

    @cached_property
    def hosts_of_jobs(self) -> dict[str, frozenset[str]]:
        """Machines by job."""
        return {job.name: self.hosts(job.hosts) for job in self.case.jobs}

    def jobs(self, finding: Finding) -> tuple[str, ...]:
        """The jobs that a finding may be of: those it names, else all."""
        named = tuple(name for name in finding.where.jobs if name in self.hosts_of_jobs)
        return named or tuple(self.hosts_of_jobs)

    def same_node(self, one: Finding, other: Finding) -> bool:
        """Whether both are of one node; where one of them names none, of one job."""
        a, b = self._machines(one), self._machines(other)
        return not a.isdisjoint(b) if a and b else self.same_job(one, other)

    def same_job(self, one: Finding, other: Finding) -> bool:
        """Whether one job runs on nodes of both, as far as nodes and jobs are named."""
        if one.where.jobs and other.where.jobs and set(one.where.jobs).isdisjoint(other.where.jobs):
            return False
        a, b = self._machines(one), self._machines(other)
        if not a.isdisjoint(b) or self.nodes(one) == self.nodes(other) != frozenset():
            return True
        jobs = [self.hosts_of_jobs[name] for name in self.jobs(other)]
        if not jobs:  # nodes alone: two of them have nothing to do with each other
            return not (a and b)
        return any(_may_be_in(a, hosts) and _may_be_in(b, hosts) for hosts in jobs)

    @cached_property
    def first_errors(self) -> dict[str, Event | None]:
        """What JOB005 takes for the first error, by job; None for a job that shows only what follows from others."""
        from topodiag.checks.shared.job.first_error import first_error  # noqa: PLC0415 - a scan of nodes needs no check of jobs

        return {job.name: first_error(job) for job in self.case.jobs}

    @cached_property
    def earlier(self) -> frozenset[str]:
        """The runs of a job below whose last line the same log shows the init of a later run: how the later one went
        says how the job is. Several runs of a benchmark are no such restarts."""
        outputs = {run.source for run in self.case.runs}
        jobs = [job for job in self.case.jobs if len(job.files) == 1 and job.files[0] not in outputs]
        ready = (job for job in jobs if any(communicator.completed.any() for communicator in job.communicators))
        begun = {job.files: min(_lines(job)) for job in ready}
        started_again = [job for job in jobs if max(_lines(job), default=0) < begun.get(job.files, 0)]
        return frozenset(job.name for job in (*started_again, *(job for job in self.case.jobs if job.is_past)))

    def is_past(self, finding: Finding) -> bool:
        """Whether a finding is of earlier runs alone."""
        return bool(finding.where.jobs) and self.earlier.issuperset(finding.where.jobs)

    def is_recorder(self, job: Job) -> bool:
        """Whether a job is dumps of the flight recorder alone, whose ranks are those of the one log beside it."""
        return len(self.case.jobs) == 2 and bool(job.flight) and not job.files

    def errors(self, finding: Finding) -> list[Event]:
        """The first errors of the jobs of a finding, without jobs that show only what follows from others."""
        return [error for name in self.jobs(finding) if (error := self.first_errors[name]) is not None]

    def jobs_of(self, finding: Finding) -> list[Job]:
        names = set(self.jobs(finding))
        return [job for job in self.case.jobs if job.name in names]


def _shows_machine(node: Node) -> bool:
    parts = (node.gpus, node.nics, node.pci, node.netdevs, node.events, node.reports, node.settings, node.processes)
    return bool(node.topics) or any(parts)


def _lines(job: Job) -> list[int]:
    """Lines on which a job is met in its log."""
    begun = [process.origin for process in job.processes] + [communicator.origin for communicator in job.communicators]
    met = begun + [event.origin for event in job.events]
    return [origin.line for origin in met if origin is not None and origin.line is not None]


def _may_be_in(nodes: frozenset[str], hosts: frozenset[str]) -> bool:
    return not nodes or not hosts or not nodes.isdisjoint(hosts)


ABSENT, NUMBERS = "absent", frozenset({"rank twice", "no such rank"})
"""Faults of lines on who did not come, and on numbers that do not fit (evidence/signatures/catalogue/process.toml)."""
_STORE = regex(r"\bstore\b|Store\b|ncclUniqueId|client socket|[Rr]endezvous")
"""Words of torch for where ranks meet."""


def error_is(other: Finding, scene: Scene, *kinds: str) -> bool:
    """Whether the first error of the finding's job is of one of these kinds, or only consequences are in the log."""
    errors = [scene.first_errors[name] for name in scene.jobs(other)]
    return not errors or any(event is None or event.kind in kinds for event in errors)


def error_says(other: Finding, scene: Scene, *words: str) -> bool:
    """Whether the text of the first error of the finding's job holds one of these words."""
    return any(word in event.text for event in scene.errors(other) for word in words)


def comes_from(finding: Finding, scene: Scene, lines: Callable[[Event], bool]) -> bool:
    """Whether a finding rests on such a line of its job."""
    origins = [event.origin for job in scene.jobs_of(finding) for event in job.events if lines(event)]
    return any(origin in origins for origin in finding.evidence)


def waits_for_all(event: Event) -> bool:
    """Whether a line is of one that waited for all others: not of one that waits for what another rank makes."""
    return event.details.get("fault") == ABSENT and event.kind != "stalled"


def of_number(event: Event) -> bool:
    """Whether a line says that a rank's number does not fit the world."""
    return event.details.get("fault") in NUMBERS


def of_store(event: Event) -> bool:
    """Whether an error is one of the store at which ranks meet: it was not there, or went away."""
    return event.details.get("fault") == ABSENT or (event.kind == "connect" and _STORE.search(event.text) is not None)
