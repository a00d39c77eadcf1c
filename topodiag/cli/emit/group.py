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
        "dot": ("emit.picture:dot", "A picture of the node for Graphviz."),
        "pdf": ("emit.picture:pdf", "The picture of emit svg as PDF."),
        "png": ("emit.picture:png", "The picture of emit svg as PNG."),
        "svg": ("emit.picture:svg", "A picture of the node: sockets, switches, GPUs, NICs, NVLinks; sick links red."),
    }


@click.group(cls=_Emit)
def emit() -> None:
    """Write files that apply a fix. Each file is read back and checked before it is written."""
