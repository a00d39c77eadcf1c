"""`topodiag place`: the commands about where ranks sit, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from topodiag.cli import LazyGroup


class _Place(LazyGroup):
    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        "audit": (
            "place.audit:audit",
            "Price a layout by dimension, and compare it with the best possible.",
        ),
        "solve": ("place.solve:solve", "Find the map from ranks to nodes and GPUs with the shortest step."),
        "emit": ("place.emit:emit", "Write a map as hostfile, rankfile, SLURM_HOSTFILE and others."),
    }


@click.group(cls=_Place)
def place() -> None:
    """Check, optimise and write rank placement.

    \b
    Examples
      # a job that ran, by its NCCL logs
      topodiag place audit --log job.log
      # one that does not run yet
      topodiag place audit --nodes 32 --tp 8 --pp 4 --rule cyclic
      # a map on the nodes at hand
      topodiag place solve --topology topology.conf --exclude gpu07 --tp 8
      # drawn, before and after
      topodiag place solve --log job.log --picture
    """
