"""What `topodiag place` commands share on the command line: the cluster, the layout, the parallel dimensions.

A command takes them with `place_options` as one argument, `asked`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from topodiag.cli.dimensions import layout_of, size_options
from topodiag.cli.model.options import MAX_NODES, options
from topodiag.cli.model.params import Pair
from topodiag.cli.params import PLACE, Count
from topodiag.model.dimensions import ORDER

if TYPE_CHECKING:
    from topodiag.app.place import PlaceOptions

CLUSTER = (
    click.option(
        "--topology", type=PLACE, metavar="FILE", default="",
        help="The cluster: Slurm topology.conf, topology.yaml or scontrol show topology, ibnetdiscover, iblinkinfo,"
        " kubectl get nodes -o json, CSV.",
    ),
    click.option(
        "--bundles", type=PLACE, metavar="PATH", multiple=True,
        help="The nodes: bundles of `topodiag scan --save`, or a folder of them; repeat it. Goes with --topology.",
    ),
    click.option(
        "--system", metavar="NAME|PATH", default="",
        help="What the nodes are: dgx-h100, p5, gb200-nvl72, ..., or a bundle of one (default: as the file says).",
    ),
    click.option("--gpu", metavar="NAME", default="", help="The GPU, where a system is sold with several."),
    click.option(
        "--nics", type=Pair("NICs", "8x400", whole=False), metavar="COUNTxGBPS",
        help="NICs of a node for the job, in place of the datasheet's.",
    ),
    click.option("--nodes", type=Count(1, MAX_NODES), metavar="N", help="So many nodes, without --topology."),
    click.option("--leaf", type=Count(1, MAX_NODES), metavar="NODES", help="Nodes under a leaf switch, with --nodes."),
    click.option("--racks", type=Count(1, MAX_NODES), metavar="N", help="Equal racks, with --nodes."),
    click.option(
        "--oversubscription", type=click.FloatRange(1, 1000), metavar="RATIO",
        help="What enters a leaf over what goes up to the spine.",
    ),
    click.option("--nodelist", metavar="NODES", default="", help="Only these nodes: gpu[001-064]."),
    click.option(
        "--exclude", multiple=True, metavar="NODES[:GPUS]", help="Broken or taken: gpu07, or gpu07:0,3; repeat it."
    ),
    click.option("--free", type=PLACE, metavar="FILE", default="", help="Free GPUs, a line per node: gpu[01-04] 0-3."),
)  # fmt: skip
LAYOUT = (
    click.option("--hostfile", type=PLACE, metavar="FILE", default="", help="Of Open MPI, MPICH or Intel MPI."),
    click.option("--rankfile", type=PLACE, metavar="FILE", default="", help="Of Open MPI."),
    click.option("--slurm-hostfile", type=PLACE, metavar="FILE", default="", help="SLURM_HOSTFILE: a host per task."),
    click.option("--torchrun", type=PLACE, metavar="FILE", default="", help="Nodes in the order of their node ranks."),
    click.option("--map", "map_", type=PLACE, metavar="FILE", default="", help="A map that place wrote as JSON."),
    click.option("--log", "logs", type=PLACE, multiple=True, metavar="FILE", help="The NCCL logs of a job; repeat it."),
    click.option(
        "--rule", type=click.Choice(("block", "cyclic", "alphabetical")), default=None,
        help="How the launcher numbers ranks, without a file.",
    ),
)  # fmt: skip
DIMENSIONS = (
    size_options(),
    click.option("--order", metavar="ORDER", default="", help=f"Fastest dimension first (default: {ORDER})."),
    click.option(
        "--groups", type=PLACE, metavar="FILE", default="",
        help="Groups as JSON or YAML: together: [0-7, 8-15], may_span: [...].",
    ),
    click.option("--ranks", type=Count(1, 1 << 22), metavar="N", help="Ranks of the job (default: what fits)."),
)  # fmt: skip
_NAMES = ("topology", "bundles", "system", "gpu", "nics", "nodes", "leaf", "racks", "oversubscription", "nodelist",
          "exclude", "free", "hostfile", "rankfile", "slurm_hostfile", "torchrun", "map_", "logs", "rule", "sizes",
          "order", "groups", "ranks")  # fmt: skip


def place_options(command: Callable[..., None]) -> Callable[..., None]:
    """The shared options, handed to the command as its argument `asked`."""

    @options(CLUSTER, LAYOUT, DIMENSIONS)
    @wraps(command)
    def wrapped(*args: Any, **given: Any) -> None:
        taken = {name: given.pop(name) for name in _NAMES}
        command(*args, asked=asked_of(taken), **given)

    return wrapped


def asked_of(given: dict[str, Any]) -> PlaceOptions:
    """The options as values. `given` has every name of the shared options."""
    from topodiag.app.place import ClusterOptions, LayoutOptions, PlaceOptions  # noqa: PLC0415

    system = given["system"]
    if given["topology"] and Path(given["topology"]).is_dir():
        raise click.UsageError("--topology is a file of the cluster; a folder of bundles goes in as --bundles.")
    layout = layout_of(given["sizes"], given["order"])
    cluster = ClusterOptions(
        system=system, nodes=given["nodes"] or 0, gpu=given["gpu"], nics=given["nics"], leaf=given["leaf"] or 0,
        racks=given["racks"] or 0, oversubscription=given["oversubscription"], topology=given["topology"],
        bundles=given["bundles"], nodelist=given["nodelist"], exclude=given["exclude"], free=given["free"],
    )  # fmt: skip
    places = LayoutOptions(
        hostfile=given["hostfile"], rankfile=given["rankfile"], slurm_hostfile=given["slurm_hostfile"],
        torchrun=given["torchrun"], map=given["map_"], logs=given["logs"], rule=given["rule"] or "",
    )  # fmt: skip
    if given["groups"] and layout is not None:
        raise click.UsageError("--groups and parallel sizes both say who talks to whom: give one.")
    return PlaceOptions(cluster, places, layout, given["groups"], given["ranks"] or 0)
