"""A case: all evidence at some paths, joined by what it speaks of, before any check has judged it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from topodiag.lazy import dataclass
from topodiag.model.finding import Input
from topodiag.model.identity import Identity, Tie
from topodiag.model.node import Node
from topodiag.model.progress import Progress
from topodiag.model.provenance import NotObserved
from topodiag.model.result import UnreadLine
from topodiag.model.timeline import Timeline

if TYPE_CHECKING:
    from topodiag.model.bench import BenchRun
    from topodiag.model.cluster_facts import ClusterFacts
    from topodiag.model.job import Job  # numpy is slow to load, and a case of nodes needs none
    from topodiag.model.layout import Layout
    from topodiag.model.rank_hosts import RankHosts


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
