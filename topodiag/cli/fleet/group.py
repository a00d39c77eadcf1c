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
        "compare": ("fleet.compare:compare", "Find the nodes that differ from their peers, and those to exclude now."),
        "history": (
            "fleet.history:history",
            "Show what changed over time, which links come and go, which nodes keep failing.",
        ),
    }


@click.group(cls=_Fleet)
def fleet() -> None:
    """Collect the evidence of many nodes, compare each node with its peers, and keep the history.

    \b
    First steps
      topodiag fleet collect --nodelist gpu[001-200] --to monday/
      topodiag fleet compare monday/ --fail-list bad
      topodiag fleet history /srv/history monday/
    """
