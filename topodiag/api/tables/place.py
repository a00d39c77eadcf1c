"""Tables of a layout: the map, what each dimension costs, its groups, and what stays split."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from topodiag.api.tables.interface import Row, Table, columns, flat, joined
from topodiag.api.tables.result import FINDING, finding_rows
from topodiag.model.finding import Finding
from topodiag.report.documents.types import place as shape


class Audited(Protocol):
    """A layout that was audited."""

    @property
    def document(self) -> shape.AuditDocument: ...
    @property
    def findings(self) -> tuple[Finding, ...]: ...


class Solved(Protocol):
    """A layout that was solved."""

    @property
    def document(self) -> shape.SolveDocument: ...
    @property
    def findings(self) -> tuple[Finding, ...]: ...


def _map(made: Audited | Solved) -> Iterator[Row]:
    for row in made.document.map:
        groups = joined(f"{name}={number}" for name, number in row.groups.items())
        yield *flat(row, "rank", "host", "local_rank", "gpu", "nic"), groups


def _audited(made: Audited) -> Iterator[Row]:
    for name, cost in made.document.cost.items():
        yield name, *flat(cost, "groups", "size", "level", "ms_per_step", "best_ms", "bound_ms", "lost_percent")


def _solved(made: Solved) -> Iterator[Row]:
    for name, cost in made.document.cost.items():
        yield name, *flat(cost, "groups", "size", "level", "ms_per_step", "before_ms_per_step", "bound_ms")


MAP = Table(
    "Where each rank sits.",
    columns("""
        rank whole: Rank.
        host text: Node.
        local_rank whole: Rank on the node.
        gpu whole: GPU of the node.
        nic whole: Rail of the GPU.
        groups text: Number of its group in each dimension, tp=0 pp=1.
    """),
    _map,
)
AUDITED_DIMENSIONS = Table(
    "What each dimension costs as it lies, and what the same GPUs could give.",
    columns("""
        dimension text: Dimension of parallelism.
        groups whole: Groups.
        ranks whole: Ranks of a group.
        level text: Where the slowest group meets.
        ms_per_step number ms: What a step waits for it.
        best_ms number ms: The same ranks packed on the same GPUs.
        bound_ms number ms: Alone on these GPUs.
        lost_percent number %: Part of a step that is lost.
    """),
    _audited,
)
GROUPS = Table(
    "Groups of each dimension.",
    columns("""
        dimension text: Dimension of parallelism.
        group whole: Number of the group.
        level text: Where its ranks meet.
        domains whole: NVLink domains that it lies in.
        ms_per_step number ms: What a step waits for it.
        best_ms number ms: At best.
        lost_percent number %: Part of a step that is lost.
    """),
    lambda made: (
        flat(group, "dimension", "id", "level", "domains", "ms_per_step", "best_ms", "lost_percent")
        for group in made.document.groups
    ),
)
SOLVED_DIMENSIONS = Table(
    "What each dimension costs in the map that was found.",
    columns("""
        dimension text: Dimension of parallelism.
        groups whole: Groups.
        ranks whole: Ranks of a group.
        level text: Where the slowest group meets.
        ms_per_step number ms: What a step waits for it.
        before_ms number ms: What a step waited for it in the layout before.
        bound_ms number ms: Alone on these GPUs.
    """),
    _solved,
)
SPLITS = Table(
    "Groups that could not be kept together.",
    columns("""
        dimension text: Dimension of parallelism.
        groups whole: Groups that stay split.
        of whole: Groups.
        ranks text: Ranks of one of them, parted by blanks.
        nodes text: Its nodes, parted by blanks.
        why text: Why.
    """),
    lambda made: (flat(split, "dimension", "groups", "of", "ranks", "nodes", "why") for split in made.document.splits),
)
FINDINGS = Table("Faults of the layout, worst first.", FINDING, lambda made: finding_rows(made.findings))
