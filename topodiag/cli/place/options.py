"""What `topodiag place` commands share on the command line: the cluster, the layout, the parallel dimensions.

A command takes them with `place_options` as one argument, `asked`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from topodiag.cli.command import JOB
from topodiag.cli.dimensions import layout_of, order_option, size_options
from topodiag.cli.errors import note_aside
from topodiag.cli.options import options, value_options
from topodiag.cli.params import EVIDENCE
from topodiag.words.text import clean

if TYPE_CHECKING:
    from topodiag.app.case.place_paths import PlaceOptions

_CLUSTER = ("topology", "bundles", "system", "machine", "gpu", "nics", "nodes", "leaf", "racks", "oversubscription",
            "nodelist", "exclude", "free")  # fmt: skip
_LAYOUT = ("hostfile", "rankfile", "slurm_hostfile", "torchrun", "map_", "logs", "rule")
_NAMES = (*_CLUSTER, *_LAYOUT, "sizes", "order", "groups", "world_size", "paths")
LAUNCHERS = ("slurm-hostfile", "slurm-flags", "rankfile", "hostfile", "mpich", "torchrun", "kubernetes")
"""Formats of a map that launchers read."""


def _sorted(**given: Any) -> PlaceOptions:
    """The options with the paths put where they belong by their content; what is left aside is named on standard
    error."""
    from topodiag.app.case.place_paths import sort_paths  # noqa: PLC0415 - heavy from here on

    sorted_options, left = sort_paths(asked_of(given))
    for line in left:
        note_aside(f"note: {clean(line)}")
    return sorted_options


def _one_of(machine: str | None, system: str | None) -> str:
    if machine is not None and system is not None:
        raise click.UsageError("--machine and --system exclude each other.")
    return machine or system or ""


def asked_of(given: dict[str, Any]) -> PlaceOptions:
    """The options as values. `given` has every name of the shared options."""
    from topodiag.app.case.place_paths import place_options as placed  # noqa: PLC0415 - heavy from here on

    left = dict(given)
    left["system"] = _one_of(left.pop("machine"), left["system"])
    if left["topology"] and Path(left["topology"]).is_dir():
        raise click.UsageError("--topology is a file of the cluster; a folder of bundles goes in as --bundles.")
    layout, paths = layout_of(left.pop("sizes"), left.pop("order")), left.pop("paths")
    if left["groups"] and layout is not None:
        raise click.UsageError("--groups and parallel sizes both say which ranks form groups: give one.")
    left |= {"map": left.pop("map_"), "ranks": left.pop("world_size"), "nodelist": ",".join(left["nodelist"])}
    of_job = JOB in click.get_current_context().meta
    return placed(left, layout, paths, least_ranks=layout.least_world if layout is not None and of_job else 0)


place_options = value_options(
    "asked",
    _sorted,
    options(
        click.argument("paths", metavar="[PATH]...", nargs=-1, type=EVIDENCE),
        options(*_CLUSTER, of="place"), *_LAYOUT, size_options(), order_option, "groups", "world_size",
    ),
    _NAMES,
)  # fmt: skip
"""The shared options, handed to the command as its argument `asked`."""
