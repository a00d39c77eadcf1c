"""A check that judges a topology file: of the node that it is given as, or alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.topo_file import without_file
from topodiag.model.finding import Outcome
from topodiag.model.nccl_tree import NcclFile
from topodiag.model.node import Node

O = TypeVar("O")  # noqa: E741 - the observation


class FileCheck(NodeCheck[O]):
    """A check of the topology file of a node. A node without one is unknown, or not applicable."""

    def observe(self, judged: Node, peers: Sequence[Node]) -> O | Outcome:
        file = judged.nccl_file
        if file is None:
            status, why = without_file(judged)
            return Outcome(self.id, status, judged.host, why=why)
        return self.observe_file(judged, file)

    @abstractmethod
    def observe_file(self, node: Node, file: NcclFile) -> O | Outcome:
        """What is so with a file, or the outcome without findings."""
