"""`topodiag bench plan`, `run` and `read`: the runs that find bad links and nodes, planned, done and judged."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import FAILED, FOUND, reach
from topodiag.cli.options import Command, Printing, env_reader, option, options, report_options
from topodiag.cli.output import conclude_by, printable_with, write_answer, write_svg, write_text
from topodiag.cli.params import PLACE
from topodiag.model.errors import InputError, TopodiagError
from topodiag.model.sweep import Launch, State, SweepJudgement, SweepPlan, SweepResult
from topodiag.words.text import clean, shell_word
from topodiag.words.units import in_gbs, plural, spell_s

if TYPE_CHECKING:
    from topodiag.sweep.run import Summary


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

    from topodiag.sweep.commands import refuse_arguments, refuse_environment  # noqa: PLC0415
    from topodiag.sweep.places import fabric_from  # noqa: PLC0415
    from topodiag.sweep.plan import DEFAULT, first_round  # noqa: PLC0415
    from topodiag.sweep.planfile import plan_text  # noqa: PLC0415

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


@click.command(cls=Command)
@click.argument("plan", metavar="PLAN|DIR", type=PLACE)
@options("folder", "bin_dir", "parallel", "retry", "keep_going", "write_bw", "dry_run", "quiet", of="bench run")
def run(  # noqa: PLR0917 - one parameter per option
    plan: str,
    folder: str,
    bin_dir: str | None,
    parallel: int,
    retry: bool,
    keep_going: bool,
    write_bw: bool,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Run the benchmarks of a plan, or the next round in the folder of earlier results.

    The same command continues after an interruption: each result is saved before the next run starts. A plan holds
    commands, so run only a plan that you trust.

    \b
    Examples
      topodiag bench run plan.json
      topodiag bench run plan.sweep
    """
    from topodiag.sweep.run import find_programs, run_plan  # noqa: PLC0415 - heavy from here on
    from topodiag.sweep.store import opened_store  # noqa: PLC0415

    sweep = _plan_of(plan, write_bw)
    if sweep is None:
        click.echo("nothing is suspect any more: no round is left to run", err=True)
        return
    if bin_dir is not None and not Path(bin_dir).is_dir():
        raise TopodiagError(f"{bin_dir}: is no folder", hint="the folder of all_reduce_perf and its peers")
    programs, missing = find_programs(sweep, bin_dir)
    if dry_run:
        _show(sweep, programs)
        for name in missing:
            click.echo(f"not found: {name}", err=True)
        return
    if missing:
        raise TopodiagError(
            f"not found: {', '.join(missing)}",
            hint="nccl-tests built with MPI=1 has the *_perf programs (--bin-dir DIR), perftest has ib_write_bw",
        )
    place = folder or _folder(plan, sweep.round)
    with opened_store(place, sweep) as store, _progress(quiet) as tell:
        done = run_plan(sweep, store, programs, parallel=parallel, retry=retry, keep_going=keep_going, on_result=tell)
    reach(_end(done, place, quiet))


def _plan_of(path: str, write_bw: bool) -> SweepPlan | None:
    """The plan in a file; of a folder the last round while it is not done, then the next. None: no round is left."""
    from topodiag.sweep.planfile import read_plan  # noqa: PLC0415

    if not Path(path).is_dir():
        return read_plan(path)
    from topodiag.sweep.further import next_round  # noqa: PLC0415
    from topodiag.sweep.judge import judge  # noqa: PLC0415
    from topodiag.sweep.store import read_store  # noqa: PLC0415

    stored = read_store(path)
    judged = judge(stored.plans, stored.results)
    return stored.plans[-1] if judged.missing else next_round(stored.plans, judged, write_bw=write_bw)


def _folder(path: str, number: int) -> str:

    if Path(path).is_dir():
        return path
    if number > 1:
        raise TopodiagError(f"{path}: is the plan of round {number}", hint="name the folder of its sweep with --to")
    return str(Path(path).with_suffix(".sweep"))


def _show(sweep: SweepPlan, programs: dict[str, str]) -> None:
    from topodiag.sweep.commands import command  # noqa: PLC0415
    from topodiag.sweep.run import placed  # noqa: PLC0415

    wave = 0
    for sweep_run in sorted(sweep.runs, key=lambda planned: planned.wave):
        if sweep_run.wave != wave:
            wave = sweep_run.wave
            click.echo(f"# wave {wave}")
        started = placed(
            command(sweep, sweep_run), sweep_run.program, programs.get(sweep_run.program, sweep_run.program)
        )
        if started.server:
            click.echo(" ".join(map(shell_word, started.server)) + " &")
        click.echo(" ".join(map(shell_word, started.argv)))


def _end(done: Summary, folder: str, quiet: bool) -> int:

    bad = {state: count for state, count in done.states.items() if state is not State.OK}
    if not quiet:
        before = f" ({done.before} done before)" if done.before else ""
        counts = ", ".join(f"{count} {state.value}" for state, count in bad.items())
        click.echo(f"{plural(done.done, 'run')}{before}" + (f": {counts}" if counts else ""), err=True)
    if done.gave_up:
        click.echo(f"topodiag: error: no run has worked: {done.gave_up}", err=True)
        click.echo(
            f"  hint: read {folder}/output, remove the cause, and run again with --retry (or --keep-going)", err=True
        )
        return FAILED
    if not quiet:
        click.echo(f"next: topodiag bench read {folder}", err=True)
    return FOUND if bad else 0


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[SweepResult, int, int], None] | None]:
    """A bar for someone who watches, a line a run for a log."""
    from topodiag.cli.progress import bar  # noqa: PLC0415 - heavy

    def line(result: SweepResult) -> str:
        what = in_gbs(result.gbs or 0.0) if result.state.value == "ok" else f"{result.state.value}: {result.why}"
        return clean(f"{result.run}: {what}")

    with bar(Printing(quiet=quiet), "starting", "MofNCompleteColumn", "TimeElapsedColumn") as shown:

        def tell(result: SweepResult, done: int, total: int) -> None:
            if shown is None:
                click.echo(f"[{done}/{total}] {line(result)}", err=True)
                return
            shown.show(done, total, line(result))
            if result.state.value != "ok":
                shown.say(line(result))

        yield None if quiet else tell


@click.command(cls=Command)
@click.argument("folder", metavar="DIR", type=PLACE)
@options("next_plan", "write_bw", "svg", of="bench read")
@report_options()
def read(folder: str, next_plan: str | None, write_bw: bool, svg: str | None, printing: Printing) -> None:
    """Show what the runs of a plan found: pair matrix, nodes, NICs and rails at fault, and what needs more runs.

    DIR is the folder of `bench run`. Exit code 1: a fault is confirmed. With --fail-on warning, a suspect or two
    placements that differ by 30 % also exit 1.

    \b
    Examples
      topodiag bench read plan.sweep
      topodiag bench read plan.sweep --next plan2.json
    """
    from topodiag.draw.heat import heat_svg  # noqa: PLC0415
    from topodiag.model.finding import Severity  # noqa: PLC0415
    from topodiag.model.result import Result  # noqa: PLC0415
    from topodiag.report.html.fleet import sweep_extras  # noqa: PLC0415
    from topodiag.report.sweep.page import draw_sweep, sweep_json  # noqa: PLC0415
    from topodiag.sweep.further import next_round  # noqa: PLC0415
    from topodiag.sweep.judge import judge  # noqa: PLC0415
    from topodiag.sweep.parts import sweep_findings  # noqa: PLC0415
    from topodiag.sweep.planfile import plan_text  # noqa: PLC0415
    from topodiag.sweep.store import read_store  # noqa: PLC0415

    if printing.redact and next_plan is not None:
        raise click.UsageError("--next writes the names of the nodes that are to run: leave --redact or --next out.")
    stored = read_store(folder)
    judged = judge(stored.plans, stored.results)
    further = None if judged.missing else next_round(stored.plans, judged, write_bw=write_bw)
    warned = Severity.WARNING if judged.suspects or judged.gaps else None
    conclude_by(warned, printing.fail_on, is_bad=bool(judged.confirmed))
    answer = (judged, stored.plans, further, stored.inputs)
    (name,), (shown, plans, after, inputs) = printable_with([folder], answer, redact=printing.redact)

    fabric = plans[-1].fabric
    write_answer(
        printing, "bench read", lambda page: draw_sweep(page, shown, plans, after),
        lambda: sweep_json(shown, plans, after, inputs),
        lambda: Result(findings=tuple(sweep_findings(shown, fabric)), inputs=inputs),
        lambda: sweep_extras(shown, fabric),
    )  # fmt: skip
    if svg is not None:
        write_svg(svg, heat_svg(shown, fabric, f"Pairs of nodes, {name}"))
    if next_plan is not None:
        _write_next(next_plan, None if further is None else plan_text(further), judged.missing)
    if not printing.quiet:
        _hints(folder, stored.torn, judged, further is not None)


def _write_next(path: str, text: str | None, missing: int) -> None:

    if text is None:
        if missing:
            raise InputError(path, f"not written: {missing} runs of this round are not done", hint="finish it first")
        click.echo("no next round: nothing is suspect that more runs could narrow down", err=True)
        return
    write_text(path, text)


def _hints(folder: str, torn: int, judged: SweepJudgement, more: bool) -> None:
    if torn:
        click.echo(f"{torn} torn lines of {folder}/results.jsonl are left out; their runs will be done again", err=True)
    if judged.missing or more:
        click.echo(f"next: topodiag bench run {folder}", err=True)
