"""A case: all evidence at some paths, joined by what it speaks of, before any check has judged it: who is who, by every
name that some source gives a host, and what happened, on one axis of time; and the result of its diagnosis: what was
read, what is known, what was found, and what could not be seen.

Rank, node and GPU stay three things until a line maps them. What cannot be mapped keeps its own name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from topodiag.lazy import dataclass
from topodiag.model.events import Progress
from topodiag.model.finding import Finding, Input, Outcome, Severity, Status
from topodiag.model.node import Node
from topodiag.model.provenance import NotObserved, Origin
from topodiag.model.verdict import State, Verdict

if TYPE_CHECKING:
    from topodiag.model.bench import Benchmark, BenchRun
    from topodiag.model.cluster import RankHosts
    from topodiag.model.cluster_facts import ClusterFacts
    from topodiag.model.job import Job  # numpy is slow to load, and a case of nodes needs none
    from topodiag.model.layout import Layout


@dataclass(frozen=True, slots=True)
class Tie:
    """Names that a source says are of one machine, the machine's own name first: a pod, its node and its address.
    `how` is the reason in words."""

    names: tuple[str, ...]
    how: str = ""
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """One machine. `name` is what the case calls it, `aliases` every other name of it (FQDN, addresses, pods, container
    ids, the name of its capture), each with how it was tied to the machine in `ties`. `sources` are the kinds of
    evidence that speak of it ("bundle", "log", "nccl-tests", "hostfile", "kernel log").

    `boot` is when the machine booted by its last capture, as `2026-11-01 07:14:18` in UTC, "" where none tells it.
    `stale` says why its capture does not show the machine as the job met it, "" where nothing says so: then the capture
    counts for what cannot have changed.
    """

    name: str
    aliases: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    boot: str = ""
    stale: str = ""
    ties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources that cannot both be right of one object, or that show different things of it: `a bundle shows 8 NICs
    that are up, the log of the same host shows none`. `check` is the finding that the contradiction is, "" for none."""

    subject: str
    text: str
    evidence: tuple[Origin, ...] = ()
    check: str = ""


@dataclass(frozen=True)
class Identity:
    """All hosts of a case, and what is in conflict."""

    hosts: tuple[Host, ...] = ()
    conflicts: tuple[Conflict, ...] = ()

    @cached_property
    def _by_alias(self) -> dict[str, str]:
        known: dict[str, str] = {}
        for host in self.hosts:
            for alias in (host.name, *host.aliases):
                known.setdefault(alias.lower(), host.name)
        return known

    def name(self, alias: str) -> str:
        """What the case calls the host of this alias; the alias itself where no source ties it to a host. `n1#2`, the
        second capture of n1, is n1."""
        known = self._by_alias.get(alias.lower()) or self._by_alias.get(alias.partition("#")[0].lower())
        return known or alias


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of one source. `zone` as an offset like `+02:00`, "" where unknown; `skew_s` is how many seconds it is
    ahead of the case's axis, `within_s` the uncertainty of that (both seconds; None where nothing ties it), `how` the
    events from which it was estimated, in a sentence."""

    source: str
    host: str = ""
    zone: str = ""
    skew_s: float | None = None
    within_s: float | None = None
    how: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """One event. `time` is seconds of the epoch on the case's axis (skew taken out), None where the source has no time;
    `stamp` is the time as the source wrote it. A wait counts from its start, not from when it was printed."""

    time: float | None
    what: str
    host: str = ""
    rank: int = -1
    stamp: str = ""
    within_s: float | None = None
    origin: Origin | None = None
    count: int = 1

    @property
    def frames(self) -> bool:
        """Whether it only frames a job and tells of no fault: a boot, a capture, an init."""
        return self.what.startswith(("the node boots", "the node is captured", "init of "))


@dataclass(frozen=True, slots=True)
class Timeline:
    """Moments in order; those without a time stand last."""

    moments: tuple[Moment, ...] = ()
    clocks: tuple[Clock, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What was read, by subject. Empty collections stand for evidence that was not given.

    `nodes` are machines, one for each capture; `jobs` are rebuilt from NCCL's logs and flight records; `runs` are
    tables of nccl-tests; `layouts` say which rank is meant to sit where; `clusters` how nodes are connected; `ties` are
    names that sources say are of one machine, `sizes` the parallel dimensions that are declared of the job. `identity`
    joins the names of one host, `timeline` says what happened when; both follow from the rest. `inputs` are the files
    that were read, `not_observed` what could not be read or was left aside, `unread` text that no reader understood,
    `progress` what still ran while the texts were written.
    """

    nodes: tuple[Node, ...] = ()
    jobs: tuple[Job, ...] = ()
    runs: tuple[BenchRun, ...] = ()
    layouts: tuple[RankHosts, ...] = ()
    clusters: tuple[ClusterFacts, ...] = ()
    ties: tuple[Tie, ...] = ()
    sizes: Layout | None = None
    identity: Identity = field(default_factory=Identity)
    timeline: Timeline = field(default_factory=Timeline)
    inputs: tuple[Input, ...] = ()
    not_observed: tuple[NotObserved, ...] = ()
    unread: tuple[UnreadLine, ...] = ()
    progress: tuple[Progress, ...] = ()

    @property
    def jobs_of_runs(self) -> tuple[Job, ...]:
        """What NCCL logged in the output of benchmarks."""
        measured = {run.source for run in self.runs}
        return tuple(job for job in self.jobs if job.files and measured.issuperset(job.files))


@dataclass(frozen=True, slots=True)
class UnreadLine:
    """Text that no parser understood: where it stands and why it was left."""

    source: str
    line: int | None
    text: str
    why: str

    @property
    def place(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A line of the evidence that says by itself that something is wrong: `NCCL WARN`, a return code, an Xid, a link
    that is down.

    `what` names the kind of line, `subject` the job or the node's host. `count` is how many lines say so. `harmless`
    says why the line tells of no fault, "" where nothing of the kind is known.
    """

    what: str
    text: str
    subject: str = ""
    origin: Origin | None = None
    count: int = 1
    harmless: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """Everything a report needs. Findings are folded and sorted, worst first, in a stable order.

    `unexplained` are lines of trouble that no finding explains, those that are known to be harmless among them.
    `given` are the paths that the user named. `state` is that of the jobs, where jobs alone were judged. `verdict`,
    `identity` and `timeline` are of a whole case: `diagnose` and `bench` fill them.
    """

    inputs: tuple[Input, ...] = ()
    nodes: tuple[Node, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    not_observed: tuple[NotObserved, ...] = ()
    unread: tuple[UnreadLine, ...] = ()
    progress: tuple[Progress, ...] = ()
    jobs: tuple[Job, ...] = ()
    benchmarks: tuple[Benchmark, ...] = ()
    unexplained: tuple[Trouble, ...] = ()
    verdict: Verdict | None = None
    state: State | None = None
    identity: Identity = field(default_factory=Identity)
    timeline: Timeline = field(default_factory=Timeline)
    given: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def worst(self) -> Severity | None:
        return max((finding.severity for finding in self.findings), default=None)

    @property
    def files(self) -> frozenset[str]:
        """What was read, by the paths that findings name."""
        paths = [path for job in self.jobs for path in job.files]
        return frozenset((*paths, *(run.run.source for run in self.benchmarks), *(item.path for item in self.inputs)))

    def troubles(self, subject: str | None = None) -> tuple[Trouble, ...]:
        """Lines of trouble of one job or host, or of all, that no finding explains and that are not known as harmless:
        beside them nobody may say that there are no faults."""
        wanted = ("", subject) if subject is not None else None
        return tuple(t for t in self.unexplained if not t.harmless and (wanted is None or t.subject in wanted))

    def undecided(self) -> tuple[Outcome, ...]:
        """Answers of checks that saw something and cannot tell whether it is a fault."""
        unknown = self.with_status(Status.UNKNOWN)
        return tuple(one for one in unknown if one.coverage is not None and one.coverage.seen)

    def with_status(self, status: Status) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.status is status)
