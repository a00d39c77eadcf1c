"""`topodiag place`: a layout judged, a map from ranks to nodes and GPUs found, and written for a launcher."""

from __future__ import annotations

import re
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import print_note
from topodiag.cli.options import Command, Printing, answer_options, options
from topodiag.cli.output import conclude, printable, write_answer, write_text
from topodiag.cli.params import EVIDENCE
from topodiag.cli.place.options import LAUNCHERS, Pictured, picture_options, place_options, training_of, work_options
from topodiag.model.errors import InputError

if TYPE_CHECKING:
    from topodiag.app.case.placement import PlaceOptions
    from topodiag.cli.model.step_options import Trained
    from topodiag.report.text import Page


@click.command(cls=Command)
@place_options
@work_options
@options("fail_on", of="place audit")
@picture_options
@answer_options()
def audit(*, asked: PlaceOptions, trained: Trained, pictured: Pictured, printing: Printing) -> None:
    """Price a layout by dimension, and compare it with the best layout on the same GPUs.

    For each dimension the report shows the links that its groups use, the time that a step waits for it, that time with
    the ranks packed on the same GPUs, and the badly placed groups. Without a layout (--hostfile, --log, --rule, ...)
    ranks are numbered node by node. -v lists the groups.

    PATH is any file that the options take, recognised by its content: hostfile, rankfile, map, NCCL logs, description
    of the cluster, bundles, or the sizes of the job's dimensions (`tp: 8`). Given a hostfile and logs, the report names
    ranks that ran on another host than declared.

    \b
    Examples
      topodiag place audit hosts nccl-logs/ topology.conf bundles/
      topodiag place audit --nodes 32 --leaf 8 --tp 8 --pp 4 --rule cyclic
      topodiag place audit --topology topology.conf --hostfile hosts --tp 8 --pp 4
    """
    from topodiag.app.place import audit_placement  # noqa: PLC0415 - heavy from here on
    from topodiag.report.html.placed import audit_extras  # noqa: PLC0415
    from topodiag.report.place.layouts import audit_json, draw_audit  # noqa: PLC0415

    audit, result = printable(audit_placement(asked, training_of(asked, trained)), redact=printing.redact)
    conclude(result, printing.fail_on)
    layouts = [(audit.name, audit.assignment), ("packed", audit.best)]
    look = pictured.look(audit.cluster, audit.talk, layouts)

    def draw(page: Page) -> None:
        draw_audit(page, audit, result.findings, result.outcomes)
        pictured.draw(page, look)

    dump = partial(audit_json, audit, result.findings, result.inputs)
    write_answer(printing, "place audit", draw, dump, lambda: result, lambda: audit_extras(audit))
    pictured.write(look)


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


_FORMATS = (*LAUNCHERS, "new-group", "json")


@click.command(cls=Command)
@click.argument("format_", metavar="FORMAT", type=click.Choice(_FORMATS))
@click.argument("map_", metavar="MAP", type=EVIDENCE, default="-")
@options("output")
def emit(format_: str, map_: str, output: str | None) -> None:
    """Write a map for a launcher: MAP is the JSON of `place solve --format json`, `-` for standard input.

    \b
    FORMAT
      slurm-hostfile  SLURM_HOSTFILE: a host per task, any order of ranks
      slurm-flags     what to ask sbatch for
      rankfile        Open MPI, any order of ranks
      hostfile        Open MPI, host after host
      mpich           MPICH (-f) and Intel MPI (-machinefile), host after host
      torchrun        the node rank of each host, host after host
      kubernetes      pod index, node and ranks as JSON
      new-group       lists for torch.distributed.new_group, and a DeviceMesh
      json            the map alone

    topodiag reads the file back before it writes it, and refuses a format that cannot hold the map. Standard error
    shows the command that uses the file.

    \b
    Example
      topodiag place solve --nodes 32 --tp 8 --format json --output map.json
      topodiag place emit slurm-hostfile map.json -o hosts
    """
    from topodiag.app.place import read_map  # noqa: PLC0415
    from topodiag.emit.place_formats import write  # noqa: PLC0415
    from topodiag.emit.place_map import UnwritableMapError  # noqa: PLC0415

    if map_ == "-" and sys.stdin is not None and sys.stdin.isatty():
        raise click.UsageError(
            "MAP is missing: a file that `place solve --format json` wrote, or its output by a pipe."
        )
    place = read_map(map_)
    try:
        written = printable(write(place, format_), redact=False)
    except UnwritableMapError as error:
        raise InputError("<stdin>" if map_ == "-" else map_, error.message, hint=error.hint) from None
    write_text(output, written.text)
    name = output if output not in {None, "-"} else "FILE"

    def named(text: str) -> str:
        return re.sub(r"\bFILE\b", lambda _: str(name), text)

    if written.command:
        click.echo(f"use it: {named(written.command)}", file=sys.stderr)
    for note in written.notes:
        print_note(f"note: {named(note)}")
