"""Kubernetes manifests of the collector, as YAML."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

import yaml

from topodiag.app.fleet.collect import nodes_of
from topodiag.fleet.collect.interface import Request
from topodiag.fleet.collect.manifest import NAME, daemon_set, job
from topodiag.model.errors import InputError

HOLD_S = 600.0
"""A pod of a Job stays so long, so that its log can be read and no second pod starts on its node."""


def manifest(kind: str, sets: Sequence[str], request: Request, *, every_s: float, keep: str) -> str:
    """A `job` on these nodes, or a `daemonset` on them (on all with GPUs, for none), as YAML. Raises InputError."""
    if not keep.startswith("/") or not keep.isprintable() or ".." in keep.split("/"):
        raise InputError(keep, "is no folder of a node", hint="write it whole: /var/lib/topodiag")
    nodes = nodes_of(sets) if sets or kind == "job" else ()
    marked = replace(request, mark=secrets.token_hex(8))
    made = job(marked, nodes, NAME, HOLD_S) if kind == "job" else daemon_set(marked, nodes, NAME, every_s, keep)
    return yaml.safe_dump_all(made, sort_keys=False, width=10**9)
