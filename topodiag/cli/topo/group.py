"""`topodiag topo`: the commands on topology files, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from topodiag.cli import LazyGroup


class _Topo(LazyGroup):
    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        "show": ("topo.show:show", "Draw the tree of a topology file."),
        "check": ("topo.check:check", "Check whether NCCL loads a topology file, and whether it fits the machine."),
        "predict": ("topo.predict:predict", "Predict what NCCL chooses: channels, algorithms, bandwidth."),
        "what-if": ("topo.what_if:what_if", "Predict what a fault, a repair or a setting changes."),
        "diff": ("topo.diff:diff", "Compare two machines."),
    }


@click.group(cls=_Topo)
def topo() -> None:
    """Check, predict, change, draw and compare topology files, by the rules of NCCL.

    A topology is a file that NCCL wrote (NCCL_TOPO_DUMP_FILE) or reads (NCCL_TOPO_FILE), a bundle of `topodiag scan`,
    XML of hwloc's lstopo, or fixture:NAME.
    """
