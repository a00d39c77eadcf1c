"""`topodiag place look`: the layout drawn, alone or beside the one that `place solve` finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.former import Command
from topodiag.cli.options import Printing, html_option, page_options, redact_option, seed_option, svg_option
from topodiag.cli.place.options import FORMER, place_options
from topodiag.cli.place.work import work_options, work_said

if TYPE_CHECKING:
    from topodiag.app.place import PlaceOptions
    from topodiag.cli.model.step_options import Trained
    from topodiag.report.html.interface import Extras


@click.command(cls=Command, former=FORMER)
@place_options
@work_options
@click.option(
    "--dimension", metavar="NAME", default="", help="Colour the groups of this dimension (default: the innermost)."
)
@click.option("--solved", is_flag=True, help="Draw the map of `place solve` beside it.")
@seed_option
@svg_option
@html_option
@redact_option
@page_options
def look(
    *,
    asked: PlaceOptions,
    trained: Trained,
    dimension: str,
    solved: bool,
    seed: int,
    svg: str | None,
    html: str | None,
    redact: bool,
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
    from topodiag.cli.html import as_shown, check_html, write_drawn  # noqa: PLC0415
    from topodiag.cli.output import check_output, write_drawing  # noqa: PLC0415
    from topodiag.model.result import Result  # noqa: PLC0415
    from topodiag.report.place.look import draw_look  # noqa: PLC0415
    from topodiag.report.place.look_svg import look_svg  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415
    from topodiag.writing import replacing  # noqa: PLC0415

    check_output(printing.output)
    check_html(html, (each.path for each in asked.inputs), printing)
    found = look_at_placement(asked, work_said(asked, trained), dimension=dimension, solved=solved, seed=seed)
    seen, inputs = as_shown((found, asked.inputs), redact=redact)

    def draw(page: Page) -> None:
        draw_look(page, seen)

    def more() -> Extras:
        from topodiag.report.html.placed import look_extras  # noqa: PLC0415 - for a page only

        return look_extras(seen)

    write_drawing(draw, printing)
    write_drawn(html, "place look", draw, None, lambda: Result(inputs=inputs), more)
    if svg is not None:
        with replacing(svg) as stream:
            stream.write(look_svg(seen).encode())
