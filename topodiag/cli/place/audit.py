"""`topodiag place audit`: a layout judged, also before it runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.options import Command, Printing, answer_options, options
from topodiag.cli.place.options import Pictured, picture_options, place_options, training_of, work_options

if TYPE_CHECKING:
    from topodiag.app.case.placement import PlaceOptions
    from topodiag.cli.model.step_options import Trained


@click.command(cls=Command)
@place_options
@work_options
@options("fail_on", of="place audit")
@picture_options
@answer_options()
@click.pass_obj
def audit(reached: Outcome, *, asked: PlaceOptions, trained: Trained, pictured: Pictured, printing: Printing) -> None:
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
    from topodiag.cli.output import printable, verdict, write_answer  # noqa: PLC0415
    from topodiag.report.html.placed import audit_extras  # noqa: PLC0415
    from topodiag.report.place.layouts import audit_json, draw_audit  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    audit, result = printable(audit_placement(asked, training_of(asked, trained)), redact=printing.redact)
    reached.code = verdict(result, printing.fail_on)
    layouts = [(audit.name, audit.assignment), ("packed", audit.best)]
    look = pictured.look(audit.cluster, audit.talk, layouts)

    def draw(page: Page) -> None:
        draw_audit(page, audit, result.findings, result.outcomes)
        pictured.draw(page, look)

    dump = partial(audit_json, audit, result.findings, result.inputs)
    write_answer(printing, "place audit", draw, dump, lambda: result, lambda: audit_extras(audit))
    pictured.write(look)
