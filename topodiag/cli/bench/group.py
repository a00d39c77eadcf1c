"""`topodiag bench`: the commands on measured collectives. A path in place of a command is read and judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from topodiag.cli import LazyGroup


class _Bench(LazyGroup):
    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        "plan": ("bench.plan:plan", "Plan few runs that find bad links and nodes."),
        "run": ("bench.run:run", "Run a plan, or continue it."),
        "read": ("bench.read:read", "Show which nodes, NICs and rails the runs of a plan found slow."),
    }
    of_paths: ClassVar[str] = "bench.judge:judge"


@click.group(cls=_Bench, subcommand_metavar="PATH... | COMMAND [ARGS]...")
def bench() -> None:
    """Check whether a measured bandwidth is normal: compare collectives with what this machine should reach.

    PATH is output of nccl-tests (text or JSON, of any version), a folder of it, or - for standard input.

    \b
    Examples
      topodiag bench all_reduce.txt
      topodiag bench results/ --system dgx-h100
      topodiag bench plan --nodelist gpu[001-064] -o plan.json
    """
