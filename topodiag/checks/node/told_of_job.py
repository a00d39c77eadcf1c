"""JOB002 and JOB008 by a text about ranks that is no log of a job: a table of a script, a parallel shell's output.

The checks look at nothing of the node. What a text says is an event of `checks/reported.py`, which makes the finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Never

from topodiag.checks.interface import NodeCheck, OneStep
from topodiag.model.finding import Outcome
from topodiag.model.node import Node


class _ToldOfJob(OneStep[Node], NodeCheck[Never]):
    """A check of jobs that a node cannot answer by itself."""

    def judge(self, node: Node, peers: Sequence[Node] = ()) -> Outcome:
        return self.not_applicable(node, "a job's ranks show it, and no text told of them")


class VersionsToldToDiffer(_ToldOfJob):
    """JOB002 by rows of hosts or ranks: one of them has another version."""

    id = "JOB002"
    title = "a host or rank has another version than the others"


class RankToldLate(_ToldOfJob):
    """JOB008 by rows of ranks: one of them takes longer for its own part of a step."""

    id = "JOB008"
    title = "a rank takes longer than the others for its own part of a step"
