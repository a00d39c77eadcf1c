"""`topodiag place look`: the layout drawn, alone or beside the one that `place solve` finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.former import Command
from topodiag.cli.options import Printing, page_options, seed_option, svg_option
from topodiag.cli.place.options import FORMER, place_options
from topodiag.cli.place.work import work_options, work_said

if TYPE_CHECKING:
    from topodiag.app.place import PlaceOptions
    from topodiag.cli.model.step_options import Trained


@click.command(cls=Command, former=FORMER)
@place_options
@work_options
@click.option(
    "--dimension", metavar="NAME", default="", help="Colour the groups of this dimension (default: the innermost)."
)
@click.option("--solved", is_flag=True, help="Draw the map of `place solve` beside it.")
@seed_option
@svg_option
@page_options
def look(
    *,
    asked: PlaceOptions,
    trained: Trained,
    dimension: str,
    solved: bool,
    seed: int,
    svg: str | None,
    printing: Printing,
) -> None:
    """Draw the layout: nodes and their GPUs below their switch or rack, coloured by the groups of one dimension.

    Groups that lie on more NVLink domains than they need are in brackets, in the SVG outlined. With --solved the better
    map stands beside it.

    \b
    Examples
      topodiag place look nccl-logs/ --solved
      topodiag place look --nodes 32 --tp 8 --rule cyclic --svg look.svg
    """
    from topodiag.app.place import look_at_placement  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.output import check_output, write_drawing  # noqa: PLC0415
    from topodiag.report.place.look import draw_look  # noqa: PLC0415
    from topodiag.report.place.look_svg import look_svg  # noqa: PLC0415
    from topodiag.writing import replacing  # noqa: PLC0415

    seen = look_at_placement(asked, work_said(asked, trained), dimension=dimension, solved=solved, seed=seed)
    check_output(printing.output)
    write_drawing(lambda page: draw_look(page, seen), printing)
    if svg is not None:
        with replacing(svg) as stream:
            stream.write(look_svg(seen).encode())
