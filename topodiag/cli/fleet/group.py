"""`topodiag fleet`: the commands about many nodes, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from topodiag.cli import LazyGroup


class _Fleet(LazyGroup):
    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        "collect": ("fleet.collect:collect", "Run the collector on many nodes and bring their bundles back."),
        "manifest": ("fleet.manifest:manifest", "Write the Kubernetes Job or DaemonSet that runs the collector."),
        "compare": ("fleet.compare:compare", "Which nodes differ from their peers, and which to exclude now."),
        "history": (
            "fleet.history:history",
            "Captures over time: what changed, what comes and goes, who keeps failing.",
        ),
    }


@click.group(cls=_Fleet)
def fleet() -> None:
    """Many nodes as one: collect their evidence, compare each with its peers, and remember it.

    \b
    First steps
      topodiag fleet collect --nodelist gpu[001-200] --to monday/
      topodiag fleet compare monday/ --fail-list bad
      topodiag fleet history /srv/history monday/
    """
