"""`topodiag model`: the commands of the alpha-beta model, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from topodiag.cli import LazyGroup


class _Model(LazyGroup):
    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        "link": ("model.link:link", "One buffer over all tiers, and where each turns bandwidth-bound."),
        "collective": ("model.collective:collective", "A collective under two placements."),
        "hierarchy": ("model.hierarchy:hierarchy", "Flat against hierarchical all-reduce, by size."),
        "step": ("model.step:step", "A whole training step: what each dimension costs, and over which tier."),
    }


@click.group(cls=_Model)
def model() -> None:
    """Price what the links allow: links, collectives and training steps, by the alpha-beta model.

    T = alpha + bytes / beta: alpha in us per message, beta in GB/s (1e9 bytes per second) of one GPU in one direction.
    """
