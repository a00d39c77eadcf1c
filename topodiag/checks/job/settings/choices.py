"""JOB003 by what ranks chose: another algorithm or protocol for the same operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.shared.job.text import failed
from topodiag.checks.words import hosts_word, rank_word
from topodiag.model.finding import Confidence, Finding, Severity
from topodiag.model.job import ChoiceApart, Job
from topodiag.words.fold import few, plural
from topodiag.words.units import number


def choice_findings(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """One finding of all sizes that ranks treat differently: the first of them stops the job."""
    if not job.choices_apart:
        return
    first = job.choices_apart[0]
    ordered = sorted(first.by_choice.items(), key=lambda item: (-len(item[1]), item[0]))
    odd = [at for _, processes in ordered[1:] for at in processes]
    ranks = {rank.process: rank.rank for rank in job.ranks}
    told = "; ".join(f"{choice} on {_place(job, processes, ranks)}" for choice, processes in ordered[:4])
    sizes = len(job.choices_apart)
    yield check.finding(
        Severity.ERROR if failed(job) else Severity.WARNING,
        f"ranks choose differently for {_operation(first)}: {few([choice for choice, _ in ordered], 4)}",
        observed=told + (f"; and so for {plural(sizes - 1, 'other size')}" if sizes > 1 else ""),
        advice=check.advice("different choices"),
        nodes=list(dict.fromkeys(job.processes[at].host for at in odd)),
        ranks=sorted({ranks[at] for at in odd if at in ranks}),
        evidence=first.origins,
        confidence=Confidence.HIGH if job.communicators else Confidence.MEDIUM,
    )


def _operation(first: ChoiceApart) -> str:
    return f"{first.collective or 'an operation'} of {number(first.bytes)} bytes"


def _place(job: Job, processes: tuple[int, ...], ranks: dict[int, int]) -> str:
    world = sorted({ranks[at] for at in processes if at in ranks})
    hosts = hosts_word(list(dict.fromkeys(job.processes[at].host for at in processes)))
    return f"{rank_word(world)} ({hosts})" if world else hosts
