"""`topodiag bench plan`: the runs that find bad links and nodes, as a file."""

from __future__ import annotations

import os

import click

from topodiag.cli.command import Command
from topodiag.cli.options import (
    algo_option,
    env_option,
    gpus_per_node_option,
    nodelist_option,
    output_option,
    quiet_option,
    topology_option,
)
from topodiag.cli.params import Count, Duration
from topodiag.model.nccl_enums import ALGO_WORDS, PROTO_WORDS
from topodiag.words.units import spell_s

KINDS = ("intra", "pairs", "ring", "rails", "racks", "bisection", "settings", "fabric")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce", "sendrecv")


@click.command(cls=Command)
@nodelist_option("Nodes to measure (default: the Slurm job's)")
@gpus_per_node_option
@click.option(
    "--rail-nics", "nics", metavar="NICS", default="",
    help="NICs in the order of their rails: mlx5_[0-7] (default: NCCL's choice).",
)  # fmt: skip
@click.option(
    "--rails", type=Count(1, 256), metavar="N", help="Number of rails (default: as many as NICs, else as GPUs)."
)
@topology_option("CSV of NODE,RACK, or Slurm's topology.conf")
@click.option(
    "--leaf-per", type=click.Choice(("rail", "rack")), default="rail", show_default=True,
    help="One leaf switch per rail of a rack, or one per rack.",
)  # fmt: skip
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(KINDS),
    help="Plan only runs of this kind; may be given several times.",
)  # fmt: skip
@algo_option(ALGO_WORDS, "Also compare this algorithm; may be given several times.")
@click.option(
    "--proto", "protocols", multiple=True, type=click.Choice(PROTO_WORDS, case_sensitive=False),
    help="Also compare this protocol; may be given several times.",
)  # fmt: skip
@click.option(
    "--collective", "collectives", multiple=True, type=click.Choice(COLLECTIVES),
    help="Also compare this collective; may be given several times.",
)  # fmt: skip
@click.option(
    "--launcher", type=click.Choice(("srun", "mpirun", "none")), default="srun", show_default=True,
    help="Program that starts the runs; none: only this machine.",
)  # fmt: skip
@click.option(
    "--launcher-arg", "arguments", multiple=True, metavar="ARG",
    help="Argument for the launcher: --launcher-arg=--mpi=pmix; may be given several times.",
)  # fmt: skip
@env_option("")
@click.option(
    "--timeout", type=Duration(), metavar="TIME", default="180s", show_default=True, help="Time limit of each run."
)
@click.option(
    "--ib-write-bw", "write_bw", is_flag=True, help="In later rounds, use ib_write_bw to separate NIC from PCIe faults."
)
@output_option
@quiet_option
def plan(  # noqa: PLR0917 - one parameter per option
    nodelist: tuple[str, ...],
    gpus_per_node: int,
    nics: str,
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

    from topodiag.cli.output import check_output, opened  # noqa: PLC0415 - heavy from here on
    from topodiag.model.errors import TopodiagError  # noqa: PLC0415
    from topodiag.model.sweep import Launch  # noqa: PLC0415
    from topodiag.sweep.launch_words import refuse_arguments, refuse_environment  # noqa: PLC0415
    from topodiag.sweep.places import fabric_from  # noqa: PLC0415
    from topodiag.sweep.plan import DEFAULT, first_round  # noqa: PLC0415
    from topodiag.sweep.planfile import plan_text  # noqa: PLC0415

    sets = nodelist or tuple(filter(None, [os.environ.get("SLURM_JOB_NODELIST", "")]))
    if launcher == "none":
        sets = sets or ("localhost",)
    if not sets:
        raise click.UsageError("Name the nodes: --nodelist gpu[001-064].", click.get_current_context())
    check_output(output)
    fabric = fabric_from(
        sets, gpus=gpus_per_node, nics=nics, rails=rails, racks=topology or None, leaf_per_rail=leaf_per == "rail"
    )
    if launcher == "none" and len(fabric.nodes) > 1:
        raise TopodiagError("--launcher none is for one node", hint="srun or mpirun starts runs on several")
    sweep = first_round(fabric, kinds or DEFAULT, algorithms=algo, protocols=protocols, collectives=collectives)
    if refused := refuse_arguments(launcher, arguments) or refuse_environment(env):
        raise click.UsageError(f"{refused}.")
    launch = Launch(launcher, arguments, env, max(round(timeout), 1))
    sweep = replace(sweep, launch=launch, write_bw=write_bw)
    with opened(output) as stream:
        stream.write(plan_text(sweep))
    if not quiet:
        _summary(sweep, output)


def _summary(sweep: object, output: str | None) -> None:
    from topodiag.model.sweep import SweepPlan  # noqa: PLC0415
    from topodiag.words.fold import plural  # noqa: PLC0415

    assert isinstance(sweep, SweepPlan)  # noqa: S101
    counts: dict[str, int] = {}
    for run in sweep.runs:
        counts[run.kind] = counts.get(run.kind, 0) + 1
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
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
