"""The checks of topology files, one line each: module and class."""

from __future__ import annotations

from topodiag.checks.shared.topo_file import without_file
from topodiag.model.finding import Status
from topodiag.model.node import Node

CHECKS = {
    "TOP001": "file:FileRefused",
    "TOP002": "another_machine:FileOfAnotherMachine",
    "TOP006": "file:FileOfARack",
}

COMPANIONS = {
    "PCI001": "links:NarrowLinkInFile",
    "NET006": "search:TreesLostInFile",
    "TOP004": "devices:GpuShortInFile",
    "TOP005": "devices:DeviceTwiceInFile",
}
"""Checks whose page stands with jobs: a topology file shows the same fault before the job runs."""


def nothing_to_judge(node: Node) -> tuple[Status, str] | None:
    """The answer of all these checks for a node without a topology file. NCCL's search is then not imported."""
    return without_file(node) if node.nccl_file is None else None
