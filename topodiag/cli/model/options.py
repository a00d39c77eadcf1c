"""What the model commands share on the command line: the machine, the output, the plot."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from topodiag.cli.model.params import LinkParam, Pair, Ratio
from topodiag.cli.params import Count

if TYPE_CHECKING:
    from topodiag.cost.alpha_beta import Link
    from topodiag.cost.tiers import Machine

MAX_NODES = 100_000
DEFAULT_SYSTEM = "dgx-h100"

Command = Callable[..., None]


def _systems(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """For the shell: the names of all systems that start so."""
    from topodiag.app.model import known_systems  # noqa: PLC0415 - not for the help

    return [name for name in known_systems() if name.startswith(incomplete.lower())]


system_options = (
    click.option(
        "--system", metavar="NAME|PATH", default=DEFAULT_SYSTEM, show_default=True, shell_complete=_systems,
        help="A system (dgx-h100, p5, gb200-nvl72, ...), a bundle, a topology file, or fixture:NAME.",
    ),
    click.option("--gpu", metavar="NAME", default="", help="The GPU, where a system is sold with several."),
    click.option(
        "--nics", type=Pair("NICs", "8x400", whole=False), metavar="COUNTxGBPS",
        help="NICs of a node for the job, in place of the datasheet's.",
    ),
    click.option("--leaf", type=Count(1, MAX_NODES), metavar="NODES", help="Nodes under a leaf switch (default: all)."),
    click.option(
        "--oversubscription", type=Ratio(1, 1000), default=1.0, metavar="RATIO",
        help="What enters a leaf over what goes up to the spine.",
    ),
)  # fmt: skip
link_options = (
    click.option(
        "--inside", type=LinkParam("inside"), metavar="US,GBS", help="The link inside a node, in place of --system."
    ),
    click.option("--outside", type=LinkParam("network"), metavar="US,GBS", help="The link between nodes, of one rank."),
    click.option(
        "--per-node",
        type=Count(1, 1024),
        default=8,
        show_default=True,
        metavar="N",
        help="GPUs per node, with --inside.",
    ),
)


def options(*groups: tuple[Callable[[Command], Command], ...]) -> Callable[[Command], Command]:
    """Several options as one decorator, in their order in the help."""

    def add(command: Command) -> Command:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return add


def machine_from(
    system: str,
    nodes: int,
    *,
    gpu: str,
    nics: tuple[int, float] | None,
    leaf: int | None,
    oversubscription: float,
    inside: Link | None = None,
    outside: Link | None = None,
    per_node: int = 8,
) -> Machine:
    """The machine that the options name. Raises ModelError, InputError, UsageError."""
    from topodiag.app.model import machine_of, machine_of_links  # noqa: PLC0415 - heavy from here on

    if inside is not None:
        return machine_of_links(inside, outside, per_node, nodes)
    if outside is not None:
        raise click.UsageError("--outside goes with --inside.")
    return machine_of(system, nodes, gpu=gpu, nics=nics, nodes_per_leaf=leaf or 0, oversubscription=oversubscription)
