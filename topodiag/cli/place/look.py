"""`topodiag place look`: the layout drawn, alone or beside the one that `place solve` finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.params import PLACE, Count, Printing, page_options
from topodiag.cli.place.options import place_options
from topodiag.cli.place.work import work_options

if TYPE_CHECKING:
    from topodiag.cli.model.step_options import Trained
    from topodiag.cli.place.options import Asked


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
    asked: Asked,
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
    from topodiag.cli.model.output import draw_or_dump  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.place.work import talk_for  # noqa: PLC0415
    from topodiag.placement.groups import ids_by_rank  # noqa: PLC0415
    from topodiag.placement.seats import by_rule  # noqa: PLC0415
    from topodiag.placement.solve import solve as find  # noqa: PLC0415
    from topodiag.report.place.look import draw_look  # noqa: PLC0415
    from topodiag.report.place.look_svg import look_svg  # noqa: PLC0415
    from topodiag.report.place.view import Look, view_of  # noqa: PLC0415
    from topodiag.writing import check_writable, replacing  # noqa: PLC0415

    if svg is not None:
        check_writable(svg)
    ready = asked.open()
    talk = talk_for(ready, trained)
    cluster, given = ready.opened.cluster, ready.opened.assignment
    before = given if given is not None else by_rule(cluster, "block", talk.world)
    ids = ids_by_rank(talk)
    real = [demand for demand in talk.demands if demand.size > 1]
    first = next((demand for demand in real if demand.keep_together), real[0] if real else None)
    chosen = next((demand for demand in real if demand.dimension == dimension), None) if dimension else first
    if chosen is None:
        names = ", ".join(dict.fromkeys(demand.dimension for demand in real)) or "none with two ranks"
        raise click.UsageError(f"--dimension {dimension[:40]!r}: the job has {names}.")
    name = chosen.dimension
    views = [view_of(cluster, before, ids[name], "as given" if given is not None else "node by node",
                     together=chosen.keep_together)]  # fmt: skip
    if solved:
        made = find(cluster, talk.demands, talk.world, seed=seed, at_most=before).assignment
        views.append(view_of(cluster, made, ids[name], "solved", together=chosen.keep_together))
    seen = Look(cluster, name, chosen.size, tuple(views))
    draw_or_dump(
        lambda page: draw_look(page, seen), dict, format_="table", printing=printing, plot=None, series=tuple, title="",
    )  # fmt: skip
    if svg is not None:
        with replacing(svg) as stream:
            stream.write(look_svg(seen).encode())
