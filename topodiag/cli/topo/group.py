"""`topodiag topo`: the commands on topology files, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from topodiag.cli import LazyGroup


class _Topo(LazyGroup):
    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        "show": ("topo.show:show", "Draw the tree of a topology file."),
        "check": ("topo.check:check", "Would NCCL load it, and is it this machine?"),
        "predict": ("topo.predict:predict", "What NCCL would choose on it: channels, algorithms, bandwidth."),
        "what-if": ("topo.what_if:what_if", "What a fault, a repair or a setting would change."),
        "diff": ("topo.diff:diff", "Compare two machines, ignoring what differs by nature."),
    }


@click.group(cls=_Topo)
def topo() -> None:
    """See what NCCL sees: topology files checked, predicted, changed, drawn and compared.

    A topology is a file that NCCL wrote (NCCL_TOPO_DUMP_FILE) or reads (NCCL_TOPO_FILE), a bundle of `topodiag scan`,
    XML of hwloc's lstopo, or fixture:NAME.
    """
