"""Collect the evidence of many nodes: by which transport, with which collector, or by manifests of Kubernetes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import replace

from topodiag.fleet.collect.archive import archive
from topodiag.fleet.collect.interface import Request
from topodiag.fleet.collect.registry import TRANSPORTS
from topodiag.fleet.collect.run import Tell, collect
from topodiag.fleet.collect.targets import nodes_of
from topodiag.model.collect import Collection
from topodiag.model.errors import InputError

AUTO = "auto"
HOLD_S = 600.0
"""A pod of a Job stays so long, so that its log can be read and no second pod starts on its node."""


def collect_fleet(
    sets: Sequence[str], to: str, via: str, request: Request, *, whole_s: float, again: bool, tell: Tell | None
) -> Collection:
    """Collect from the nodes of these sets into a folder; with `again` also from nodes with a good bundle there. `via`
    names the transport; `auto` is srun inside an allocation, else ssh. Raises InputError; KeyboardInterrupt after what
    came is written."""
    own = "srun" if os.environ.get("SLURM_JOB_ID") else "ssh"
    transport = TRANSPORTS[own if via == AUTO else via]()
    return collect(transport, nodes_of(sets), to, request, whole_s=whole_s, resume=not again, tell=tell)


def request_of(*, deadline: float | None = None, sample: float | None = None, **given: object) -> Request:
    """What is asked, with the collector of this installation."""
    asked = {"deadline_s": deadline, "sample_s": sample, **given}
    return Request(archive(), "", **{name: value for name, value in asked.items() if value is not None})  # type: ignore[arg-type]


def manifest(kind: str, sets: Sequence[str], request: Request, *, every_s: float, keep: str) -> str:
    """A `job` on these nodes, or a `daemonset` on them (on all with GPUs, for none), as YAML. Raises InputError."""
    if not keep.startswith("/") or not keep.isprintable() or ".." in keep.split("/"):
        raise InputError(keep, "is no folder of a node", hint="write it whole: /var/lib/topodiag")
    import yaml  # noqa: PLC0415 - for manifests only

    from topodiag.fleet.collect.manifest import NAME, daemon_set, job  # noqa: PLC0415

    nodes = nodes_of(sets) if sets or kind == "job" else ()
    marked = replace(request, mark=secrets.token_hex(8))
    objects = job(marked, nodes, NAME, HOLD_S) if kind == "job" else daemon_set(marked, nodes, NAME, every_s, keep)
    return yaml.safe_dump_all(objects, sort_keys=False, width=10**9)
