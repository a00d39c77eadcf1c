"""Collect the evidence of many nodes: which nodes, by which transport, and the collector they get."""

from __future__ import annotations

import os
from collections.abc import Sequence

from topodiag.app.probe import archive
from topodiag.fleet.collect.interface import Request
from topodiag.fleet.collect.registry import TRANSPORTS
from topodiag.fleet.collect.run import Tell, collect
from topodiag.fleet.collect.share import command as share_command
from topodiag.model.collect import Collection
from topodiag.model.errors import InputError
from topodiag.words.node_sets import NodeSetError, expand

ALLOCATION = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")
AUTO = "auto"


def nodes_of(sets: Sequence[str]) -> tuple[str, ...]:
    """The nodes of all these sets, each once; of none, those of the Slurm allocation that this program runs in. Raises
    InputError."""
    given = list(sets) or [os.environ[name] for name in ALLOCATION if os.environ.get(name)][:1]
    if not given:
        raise InputError(
            "--nodelist", "names no node", hint="write --nodelist gpu[001-200]; inside salloc it is not needed"
        )
    try:
        return tuple(dict.fromkeys(node for each in given for node in expand(each, groups=True)))
    except NodeSetError as error:
        raise InputError("--nodelist", str(error)) from None


def transport_of(name: str) -> str:
    """The transport by its name; `auto` is srun inside an allocation, else ssh."""
    if name != AUTO:
        return name
    return "srun" if os.environ.get("SLURM_JOB_ID") else "ssh"


def collect_fleet(
    sets: Sequence[str], to: str, via: str, request: Request, *, whole_s: float, again: bool, tell: Tell | None
) -> Collection:
    """Collect from the nodes of these sets into a folder; with `again` also from nodes with a good bundle there. Raises
    InputError; KeyboardInterrupt after what came is written."""
    transport = TRANSPORTS[transport_of(via)]()
    return collect(transport, nodes_of(sets), to, request, whole_s=whole_s, resume=not again, tell=tell)


def request_of(**given: object) -> Request:
    """What is asked, with the collector of this installation."""
    return Request(archive(), "", **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


__all__ = ["AUTO", "collect_fleet", "nodes_of", "request_of", "share_command", "transport_of"]
