"""`topodiag emit`: artefacts that apply a fix, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from topodiag.cli import LazyGroup


class _Emit(LazyGroup):
    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        "nccl-topo": ("emit.nccl_topo:nccl_topo", "An NCCL_TOPO_FILE: clean, for a virtual machine, or as a repair."),
        "nccl-conf": ("emit.nccl_conf:nccl_conf", "An nccl.conf with the settings that follow from findings."),
        "picture": ("emit.picture:picture", "A picture of the node, as SVG, PNG, PDF or for Graphviz."),
    }


@click.group(cls=_Emit)
def emit() -> None:
    """Write files that apply a fix. Each file is read back and checked before it is written."""
