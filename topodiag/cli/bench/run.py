"""`topodiag bench run`: a plan's runs, kept as they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import FAILED, FOUND, Outcome
from topodiag.cli.options import Command, Printing, options
from topodiag.cli.params import PLACE
from topodiag.words.units import in_gbs

if TYPE_CHECKING:
    from topodiag.sweep.run import Summary
    from topodiag.sweep.values import SweepPlan, SweepResult


@click.command(cls=Command)
@click.argument("plan", metavar="PLAN|DIR", type=PLACE)
@options("folder", "bin_dir", "parallel", "retry", "keep_going", "write_bw", "dry_run", "quiet", of="bench run")
@click.pass_obj
def run(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
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
    from topodiag.model.errors import TopodiagError  # noqa: PLC0415
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
    reached.code = _end(done, place, quiet)


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
    from topodiag.model.errors import TopodiagError  # noqa: PLC0415

    if Path(path).is_dir():
        return path
    if number > 1:
        raise TopodiagError(f"{path}: is the plan of round {number}", hint="name the folder of its sweep with --to")
    return str(Path(path).with_suffix(".sweep"))


def _show(sweep: SweepPlan, programs: dict[str, str]) -> None:
    from topodiag.sweep.commands import command  # noqa: PLC0415
    from topodiag.sweep.run import placed  # noqa: PLC0415
    from topodiag.words.text import shell_word  # noqa: PLC0415

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
    from topodiag.sweep.values import State  # noqa: PLC0415
    from topodiag.words.units import plural  # noqa: PLC0415

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
    from topodiag.words.text import clean  # noqa: PLC0415

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
