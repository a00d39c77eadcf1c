"""The picture of a layout, below the report of `place audit` and `place solve` and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topodiag.cli.options import options, value_options
from topodiag.lazy import dataclass

if TYPE_CHECKING:
    from topodiag.model.cluster import Assignment, Cluster
    from topodiag.placement.groups import Talk
    from topodiag.placement.view import Look
    from topodiag.report.text import Page


@dataclass(frozen=True, slots=True)
class Pictured:
    """What the options ask for: the drawing on the page, the dimension that colours it, a file of SVG."""

    picture: bool
    dimension: str
    svg: str | None

    def look(self, cluster: Cluster, talk: Talk, layouts: Sequence[tuple[str, Assignment]]) -> Look | None:
        """The layouts to draw, None where no option asks. Raises PlaceError for a dimension that the job lacks."""
        if not (self.picture or self.dimension or self.svg):
            return None
        from topodiag.app.place import look_at  # noqa: PLC0415 - heavy from here on

        return look_at(cluster, talk, layouts, self.dimension)

    def draw(self, page: Page, look: Look | None) -> None:
        """Add the drawing to the page."""
        if look is None or not (self.picture or self.dimension):
            return
        from topodiag.report.place.look import draw_look  # noqa: PLC0415

        page.blank()
        draw_look(page, look)

    def write(self, look: Look | None) -> None:
        """Write the file."""
        if look is None or self.svg is None:
            return
        from topodiag.cli.output import write_svg  # noqa: PLC0415
        from topodiag.report.place.look_svg import look_svg  # noqa: PLC0415

        write_svg(self.svg, look_svg(look))


picture_options = value_options("pictured", Pictured, options("picture", "dimension", "svg"))
"""The options; they reach the command as its argument `pictured`."""
