"""`topodiag bench read`: what a sweep found, and the next round's plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import FOUND, Outcome
from topodiag.cli.options import Command, Printing, options, report_options
from topodiag.cli.params import PLACE

if TYPE_CHECKING:
    from topodiag.sweep.values import SweepJudgement


@click.command(cls=Command)
@click.argument("folder", metavar="DIR", type=PLACE)
@options("next_plan", "write_bw", "svg", of="bench read")
@report_options()
@click.pass_obj
def read(  # noqa: PLR0917 - one parameter per option
    reached: Outcome, folder: str, next_plan: str | None, write_bw: bool, svg: str | None, printing: Printing
) -> None:
    """Show what the runs of a plan found: pair matrix, nodes, NICs and rails at fault, and what needs more runs.

    DIR is the folder of `bench run`. Exit code 1: a fault is confirmed. With --fail-on warning, a suspect or two
    placements that differ by 30 % also exit 1.

    \b
    Examples
      topodiag bench read plan.sweep
      topodiag bench read plan.sweep --next plan2.json
    """
    from topodiag.cli.output import printable_with, write_answer, write_svg  # noqa: PLC0415 - heavy from here on
    from topodiag.draw.heat import heat_svg  # noqa: PLC0415
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
    reached.code = _code(judged, printing.fail_on)
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
    from topodiag.cli.output import write_text  # noqa: PLC0415
    from topodiag.model.errors import InputError  # noqa: PLC0415

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


def _code(judged: SweepJudgement, fail_on: str) -> int:
    if fail_on == "never":
        return 0
    warned = fail_on in {"info", "warning"} and (judged.suspects or judged.gaps)
    return FOUND if judged.confirmed or warned else 0
