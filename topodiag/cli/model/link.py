"""`topodiag model link`: one buffer over all tiers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.model.options import MachineOptions, machine_options
from topodiag.cli.options import Command, Printing, options, plot_options

if TYPE_CHECKING:
    from topodiag.cost.collectives import Link


@click.command(cls=Command)
@options("size", "sizes", "links", machine_options(links=False), "nodes", of="model link")
@plot_options
def link(  # noqa: PLR0917 - one parameter per option
    size: int,
    sizes: tuple[int, ...],
    links: tuple[Link, ...],
    asked: MachineOptions,
    nodes: int,
    svg: str | None,
    explain: bool,
    printing: Printing,
) -> None:
    """Estimate the time of one buffer on each kind of link, and the size from which bandwidth sets the time.

    \b
    Examples
      topodiag model link --system dgx-h100
      topodiag model link --link NVLink=1.0,300 --link IB=5.0,50
    """
    from topodiag.app.model import ask_links  # noqa: PLC0415
    from topodiag.cli.model.options import draw_or_dump  # noqa: PLC0415 - heavy from here on
    from topodiag.report.documents.from_model import from_model  # noqa: PLC0415
    from topodiag.report.model.collective import draw_links, link_marks, link_series, links_json  # noqa: PLC0415
    from topodiag.report.model.words import machine_json  # noqa: PLC0415

    if links:
        prices = ask_links(size, links=links)
        given: dict[str, object] = {"links": [from_model("model.Link", one) for one in links]}
        name = "links as given"
    else:
        machine = asked.of_nodes(nodes)
        prices = ask_links(size, machine=machine)
        given, name = {"system": machine_json(machine)}, machine.name

    draw_or_dump(
        lambda page: draw_links(page, prices, size, sizes, explain=explain),
        lambda: links_json(prices, size, sizes, {"size": size, **given}),
        printing=printing, svg=svg, series=lambda: link_series(prices, sizes), marks=lambda: link_marks(prices),
        title=f"One message, {name}",
    )  # fmt: skip
