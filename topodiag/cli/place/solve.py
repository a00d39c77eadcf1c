"""`topodiag place solve`: a map from ranks to nodes and GPUs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from topodiag.cli.options import Command, Printing, answer_options, options
from topodiag.cli.place.options import Pictured, picture_options, place_options, training_of, work_options

if TYPE_CHECKING:
    from topodiag.app.case.placement import PlaceOptions
    from topodiag.cli.model.step_options import Trained
    from topodiag.report.text import Page


@click.command(cls=Command)
@place_options
@work_options
@options("launcher", of="place solve")
@picture_options
@answer_options()
def solve(
    *, asked: PlaceOptions, trained: Trained, pictured: Pictured, launcher: str | None, printing: Printing
) -> None:
    """Find the map from ranks to nodes and GPUs with which a training step waits least.

    topodiag uses the free GPUs of the cluster, also where nodes have different numbers, and says which nodes to
    request. It packs groups innermost first and pipelines in physical order, then exchanges ranks while the cost model
    predicts a gain. The report compares the map with the given layout (--hostfile, --log, --rule, ...; else node by
    node) and with a lower bound, and explains each group that stays split. --format json writes the map for `place
    emit`.

    \b
    Examples
      topodiag place solve topology.conf bundles/ --exclude gpu07 --tp 8
      topodiag place solve nccl-logs/ --format json --output map.json
      topodiag place emit slurm-hostfile map.json -o hosts
      topodiag place solve bundles/ --tp 4 --pp 4 --for torchrun
    """
    from topodiag.app.judge.placing import solve_placement  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.output import printable, write_answer  # noqa: PLC0415
    from topodiag.model.result import Result  # noqa: PLC0415
    from topodiag.report.html.placed import solve_extras  # noqa: PLC0415
    from topodiag.report.place.layouts import draw_solution, solution_json  # noqa: PLC0415

    if launcher and printing.output not in {None, "-"} and printing.format_ != "json":
        raise click.UsageError(
            f"-o holds the report; for a {launcher}: this command with --format json -o map.json, then "
            f"topodiag place emit {launcher} map.json -o {printing.output}"
        )
    answer = solve_placement(asked, training_of(asked, trained), launcher=launcher or "")
    solved, inputs = printable((answer, asked.inputs), redact=printing.redact)
    layouts = [(solved.before_name, solved.before), ("solved", solved.solution.assignment)]
    look = pictured.look(solved.cluster, solved.talk, layouts)

    def draw(page: Page) -> None:
        draw_solution(page, solved)
        pictured.draw(page, look)

    dump = partial(solution_json, solved, inputs)
    write_answer(printing, "place solve", draw, dump, lambda: Result(inputs=inputs), lambda: solve_extras(solved))
    pictured.write(look)
