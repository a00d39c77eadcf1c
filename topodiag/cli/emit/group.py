"""`topodiag emit`: artefacts that apply a fix, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from topodiag.cli import LazyGroup


class _Emit(LazyGroup):
    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        "nccl-topo": (
            "emit.nccl_topo:nccl_topo",
            "Write an NCCL_TOPO_FILE: of a node, of a virtual machine, or repaired.",
        ),
        "nccl-conf": ("emit.nccl_conf:nccl_conf", "Write an nccl.conf that fixes findings."),
        "picture": ("emit.picture:picture", "Draw a node as SVG, PNG, PDF or for Graphviz."),
    }


@click.group(cls=_Emit)
def emit() -> None:
    """Write files that apply a fix. topodiag reads each file back and checks it before it writes it."""
