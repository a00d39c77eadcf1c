"""`topodiag place`: the commands about where ranks sit, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from topodiag.cli import LazyGroup


class _Place(LazyGroup):
    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        "audit": ("place.audit:audit", "What a layout costs, dimension by dimension, against the best possible."),
        "solve": ("place.solve:solve", "A map from ranks to nodes and GPUs that makes a step shortest."),
        "emit": ("place.emit:emit", "Write a map as hostfile, rankfile, SLURM_HOSTFILE and others."),
        "look": ("place.look:look", "The layout drawn: racks, nodes and GPUs, coloured by group."),
    }


@click.group(cls=_Place)
def place() -> None:
    """Put ranks on the right wires: audit a layout, price it, find a better one, and write it for the launcher.

    \b
    First steps
      topodiag place audit --log job.log           a job that ran, by its NCCL logs
      topodiag place audit --nodes 32 --tp 8 --pp 4 --rule cyclic
                                                   one that does not run yet
      topodiag place solve --topology topology.conf --exclude gpu07 --tp 8
                                                   a map on the nodes at hand
      topodiag place look --log job.log --solved   drawn, before and after
    """
