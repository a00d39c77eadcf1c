"""`topodiag model`: the commands of the alpha-beta model, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from topodiag.cli import LazyGroup


class _Model(LazyGroup):
    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        "link": ("model.link:link", "Estimate the time of one buffer on each kind of link."),
        "collective": ("model.collective:collective", "Compare a collective under two placements."),
        "hierarchy": ("model.hierarchy:hierarchy", "Compare flat and hierarchical all-reduce by size."),
        "step": ("model.step:step", "Estimate a training step: what each parallel dimension costs."),
    }


@click.group(cls=_Model)
def model() -> None:
    """Estimate the best time of a message, a collective or a training step, by the alpha-beta model of the links.

    T = alpha + bytes / beta: alpha in us per message, beta in GB/s (1e9 bytes per second) of one GPU in one direction.
    """
