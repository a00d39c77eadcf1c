"""How every model command ends: the page or the JSON on its stream, and the plot in its file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from topodiag.cli.options import Printing
from topodiag.cli.output import write_page, write_svg
from topodiag.draw.plot import plot_svg
from topodiag.draw.scale import SIZE, TIME, Mark, Series
from topodiag.report.documents.from_model import Document
from topodiag.report.text import Page


def draw_or_dump(
    draw: Callable[[Page], None],
    dump: Callable[[], Document],
    *,
    printing: Printing,
    svg: str | None,
    series: Callable[[], Sequence[Series]],
    title: str,
    marks: Callable[[], Sequence[Mark]] = tuple,
    picture: Callable[[], str] | None = None,
) -> None:
    """Write the page or the object; then the plot, by `picture` (SVG) where it is no plot over sizes."""
    write_page(draw, dump, printing)
    if svg is not None:
        write_svg(svg, picture() if picture else plot_svg(series(), x=SIZE, y=TIME, title=title, marks=marks()))
