"""`topodiag bench plan`: the runs that find bad links and nodes, as a file."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import click

from topodiag.cli.options import Command, env_reader, option, options
from topodiag.words.units import plural, spell_s

if TYPE_CHECKING:
    from topodiag.sweep.values import SweepPlan


@click.command(cls=Command)
@options(
    "nodelist", "gpus_per_node", "rail_nics", "rails", "topology", "leaf_per", "kinds", "algo", "protocols",
    "collectives", "launcher", "arguments", option("env", callback=env_reader("")), "timeout", "write_bw",
    "output", "quiet",
    of="bench plan",
)  # fmt: skip
def plan(  # noqa: PLR0917 - one parameter per option
    nodelist: tuple[str, ...],
    gpus_per_node: int,
    rail_nics: str,
    rails: int | None,
    topology: str,
    leaf_per: str,
    kinds: tuple[str, ...],
    algo: tuple[str, ...],
    protocols: tuple[str, ...],
    collectives: tuple[str, ...],
    launcher: str,
    arguments: tuple[str, ...],
    env: dict[str, str],
    timeout: float,
    write_bw: bool,
    output: str | None,
    quiet: bool,
) -> None:
    """Plan a few benchmark runs that find bad links and nodes: inside each node, in two pairs of each node, and
    between racks.

    \b
    Examples
      topodiag bench plan --nodelist gpu[001-064] --rail-nics mlx5_[0-7] --topology racks.csv -o plan.json
      topodiag bench run plan.json
      topodiag bench read plan.sweep
    """
    from dataclasses import replace  # noqa: PLC0415

    from topodiag.cli.output import write_text  # noqa: PLC0415 - heavy from here on
    from topodiag.model.errors import TopodiagError  # noqa: PLC0415
    from topodiag.sweep.commands import refuse_arguments, refuse_environment  # noqa: PLC0415
    from topodiag.sweep.places import fabric_from  # noqa: PLC0415
    from topodiag.sweep.plan import DEFAULT, first_round  # noqa: PLC0415
    from topodiag.sweep.planfile import plan_text  # noqa: PLC0415
    from topodiag.sweep.values import Launch  # noqa: PLC0415

    sets = nodelist or tuple(filter(None, [os.environ.get("SLURM_JOB_NODELIST", "")]))
    if launcher == "none":
        sets = sets or ("localhost",)
    if not sets:
        raise click.UsageError("Name the nodes: --nodelist gpu[001-064].", click.get_current_context())
    fabric = fabric_from(
        sets, gpus=gpus_per_node, nics=rail_nics, rails=rails, racks=topology or None, leaf_per_rail=leaf_per == "rail"
    )
    if launcher == "none" and len(fabric.nodes) > 1:
        raise TopodiagError("--launcher none is for one node", hint="srun or mpirun starts runs on several")
    sweep = first_round(fabric, kinds or DEFAULT, algorithms=algo, protocols=protocols, collectives=collectives)
    if refused := refuse_arguments(launcher, arguments) or refuse_environment(env):
        raise click.UsageError(f"{refused}.")
    launch = Launch(launcher, arguments, env, max(round(timeout), 1))
    sweep = replace(sweep, launch=launch, write_bw=write_bw)
    write_text(output, plan_text(sweep))
    if not quiet:
        _summary(sweep, output)


def _summary(sweep: SweepPlan, output: str | None) -> None:
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(run.kind for run in sweep.runs).items())
    most = spell_s(sweep.waves * sweep.launch.timeout_s)
    click.echo(
        f"round {sweep.round}: {plural(len(sweep.runs), 'run')} ({kinds}) in {plural(sweep.waves, 'wave')}, "
        f"{most} if each takes all of its time",
        err=True,
    )
    if not sweep.fabric.racks and len(sweep.fabric.nodes) > 1:
        click.echo("no racks were given: a bad leaf will look like many bad NICs (--topology FILE)", err=True)
    if output not in {None, "-"}:
        click.echo(f"next: topodiag bench run {output}", err=True)
