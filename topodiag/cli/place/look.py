"""`topodiag place look`: the layout drawn, alone or beside the one that `place solve` finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.params import PLACE, Count, Printing, page_options
from topodiag.cli.place.options import place_options
from topodiag.cli.place.work import work_options, work_said

if TYPE_CHECKING:
    from topodiag.app.place import PlaceOptions
    from topodiag.cli.model.step_options import Trained


@click.command()
@place_options
@work_options
@click.option("--dimension", metavar="NAME", default="", help="Whose groups are coloured (default: the innermost).")
@click.option("--solved", is_flag=True, help="Draw what `place solve` finds beside it.")
@click.option("--seed", type=Count(0, 2**31 - 1), default=0, show_default=True, help="Of the local search.")
@click.option("--svg", type=PLACE, metavar="FILE", help="Write the picture as SVG, too.")
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
    """The layout drawn: nodes and their GPUs below their switch or rack, coloured by the groups of one dimension.

    Groups that lie on more NVLink domains than they need are in brackets, in the SVG outlined. With --solved the better
    map stands beside it.

    \b
    Examples
      topodiag place look --log job.log --solved
      topodiag place look --nodes 32 --tp 8 --rule cyclic --svg look.svg
    """
    from topodiag.app.place import look_at_placement  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.output import check_output, write_drawing  # noqa: PLC0415
    from topodiag.report.place.look import draw_look  # noqa: PLC0415
    from topodiag.report.place.look_svg import look_svg  # noqa: PLC0415
    from topodiag.writing import check_writable, replacing  # noqa: PLC0415

    if svg is not None:
        check_writable(svg)
    seen = look_at_placement(asked, work_said(asked, trained), dimension=dimension, solved=solved, seed=seed)
    check_output(printing.output)
    write_drawing(lambda page: draw_look(page, seen), printing)
    if svg is not None:
        with replacing(svg) as stream:
            stream.write(look_svg(seen).encode())
