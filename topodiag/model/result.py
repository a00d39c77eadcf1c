"""A case: all evidence at some paths, joined by what it speaks of, before any check has judged it; and the result of
its diagnosis: what was read, what is known, what was found, and what could not be seen."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from topodiag.lazy import dataclass
from topodiag.model.events import Progress
from topodiag.model.finding import Finding, Input, Outcome, Severity, Status
from topodiag.model.identity import Identity, Tie
from topodiag.model.node import Node
from topodiag.model.provenance import NotObserved, Origin
from topodiag.model.timeline import Timeline
from topodiag.model.verdict import State, Verdict

if TYPE_CHECKING:
    from topodiag.model.bench import Benchmark, BenchRun
    from topodiag.model.cluster import RankHosts
    from topodiag.model.cluster_facts import ClusterFacts
    from topodiag.model.job import Job  # numpy is slow to load, and a case of nodes needs none
    from topodiag.model.layout import Layout


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
