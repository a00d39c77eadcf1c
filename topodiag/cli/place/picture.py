"""The picture of a layout, below the report of `place audit` and `place solve` and as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from topodiag.cli.options import svg_option
from topodiag.cli.plotting import write_svg
from topodiag.lazy import dataclass

if TYPE_CHECKING:
    from topodiag.model.cluster import Assignment, Cluster
    from topodiag.placement.groups import Talk
    from topodiag.placement.view import Look
    from topodiag.report.text import Page


@dataclass(frozen=True, slots=True)
class Pictured:
    """What the options ask for: the drawing on the page, the dimension that colours it, a file of SVG."""

    on_page: bool
    dimension: str
    svg: str | None

    def look(self, cluster: Cluster, talk: Talk, layouts: Sequence[tuple[str, Assignment]]) -> Look | None:
        """The layouts to draw, None where no option asks. Raises PlaceError for a dimension that the job lacks."""
        if not (self.on_page or self.dimension or self.svg):
            return None
        from topodiag.app.place import look_at  # noqa: PLC0415 - heavy from here on

        return look_at(cluster, talk, layouts, self.dimension)

    def draw(self, page: Page, look: Look | None) -> None:
        """Add the drawing to the page."""
        if look is None or not (self.on_page or self.dimension):
            return
        from topodiag.report.place.look import draw_look  # noqa: PLC0415

        page.blank()
        draw_look(page, look)

    def write(self, look: Look | None) -> None:
        """Write the file."""
        if look is None or self.svg is None:
            return
        from topodiag.report.place.look_svg import look_svg  # noqa: PLC0415

        write_svg(self.svg, lambda: look_svg(look))


def picture_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options; they reach the command as its argument `pictured`."""

    @click.option("--picture", is_flag=True, help="Draw nodes and GPUs below their switch, coloured by group.")
    @click.option(
        "--dimension", metavar="NAME", default="", help="Draw the groups of this dimension (default: the innermost)."
    )
    @svg_option
    @wraps(command)
    def wrapped(*args: Any, picture: bool, dimension: str, svg: str | None, **given: Any) -> None:
        command(*args, pictured=Pictured(picture, dimension, svg), **given)

    return wrapped
