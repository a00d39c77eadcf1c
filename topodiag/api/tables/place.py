"""Tables of a layout: the map, what each dimension costs, its groups, and what stays split."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from topodiag.api.tables.interface import Part, Table, columns
from topodiag.api.tables.result import FINDING


def _dimensions(made: Any) -> Iterable[Part]:
    return (Part(name, cost) for name, cost in made.document["cost"].items())


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
    lambda made: made.document["map"],
)
AUDITED_DIMENSIONS = Table(
    "What each dimension costs as it lies, and what the same GPUs could give.",
    columns("""
        dimension text = owner: Dimension of parallelism.
        groups whole: Groups.
        ranks whole = size: Ranks of a group.
        level text: Where the slowest group meets.
        ms_per_step number ms: What a step waits for it.
        best_ms number ms: The same ranks packed on the same GPUs.
        bound_ms number ms: Alone on these GPUs.
        lost_percent number %: Part of a step that is lost.
    """),
    _dimensions,
)
GROUPS = Table(
    "Groups of each dimension.",
    columns("""
        dimension text: Dimension of parallelism.
        group whole = id: Number of the group.
        level text: Where its ranks meet.
        domains whole: NVLink domains that it lies in.
        ms_per_step number ms: What a step waits for it.
        best_ms number ms: At best.
        lost_percent number %: Part of a step that is lost.
    """),
    lambda made: made.document["groups"],
)
SOLVED_DIMENSIONS = Table(
    "What each dimension costs in the map that was found.",
    columns("""
        dimension text = owner: Dimension of parallelism.
        groups whole: Groups.
        ranks whole = size: Ranks of a group.
        level text: Where the slowest group meets.
        ms_per_step number ms: What a step waits for it.
        before_ms number ms = before_ms_per_step: What a step waited for it in the layout before.
        bound_ms number ms: Alone on these GPUs.
    """),
    _dimensions,
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
    lambda made: made.document["splits"],
)
FINDINGS = Table("Faults of the layout, worst first.", FINDING, lambda made: made.findings)
