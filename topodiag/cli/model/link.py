"""`topodiag model link`: one buffer over all tiers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.model.options import machine_from, options, system_options
from topodiag.cli.model.params import LinkParam, Size, Sizes
from topodiag.cli.params import Count, Printing, format_option, page_options
from topodiag.cli.plotting import plot_option

if TYPE_CHECKING:
    from topodiag.cost.alpha_beta import Link


@click.command()
@click.option(
    "--size", type=Size(), default="256MiB", show_default=True, metavar="SIZE", help="The buffer: 4K, 256MiB, 16MB."
)
@click.option(
    "--sizes", type=Sizes(), default="4K:1G", show_default=True, metavar="FROM:TO", help="The sweep of the plot."
)
@click.option(
    "--link",
    "links",
    type=LinkParam("link"),
    multiple=True,
    metavar="NAME=US,GBS",
    help="A tier, in place of --system: NVLink=1.0,300; repeat it.",
)
@options(system_options)
@click.option("--nodes", type=Count(1, 100_000), default=2, show_default=True, metavar="N", help="Nodes of the system.")
@plot_option
@click.option("--explain", is_flag=True, help="Show each term of the derivation.")
@format_option
@page_options
@click.pass_obj
def link(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    size: int,
    sizes: tuple[int, ...],
    links: tuple[Link, ...],
    system: str,
    gpu: str,
    nics: tuple[int, float] | None,
    leaf: int | None,
    oversubscription: float,
    nodes: int,
    plot: str | None,
    explain: bool,
    format_: str,
    printing: Printing,
) -> None:
    """One buffer over all tiers: its time on each, against the fastest, and where each turns bandwidth-bound."""
    from topodiag.app.model import ask_links  # noqa: PLC0415
    from topodiag.cli.model.output import draw_or_dump  # noqa: PLC0415 - heavy from here on
    from topodiag.report.model.link import draw_links, link_marks, link_series, links_json  # noqa: PLC0415
    from topodiag.report.model.words import link_json, machine_json  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    if links:
        made = ask_links(size, links=links)
        given: dict[str, object] = {"links": [link_json(each) for each in links]}
        name = "links as given"
    else:
        machine = machine_from(system, nodes, gpu=gpu, nics=nics, leaf=leaf, oversubscription=oversubscription)
        made = ask_links(size, machine=machine)
        given, name = {"system": machine_json(machine)}, machine.name

    def draw(page: Page) -> None:
        draw_links(page, made, size, sizes, explain=explain)

    draw_or_dump(
        draw,
        lambda: links_json(made, size, sizes, {"size": size, **given}),
        format_=format_, printing=printing,
        plot=plot, series=lambda: link_series(made, sizes), marks=lambda: link_marks(made),
        title=f"One message, {name}",
    )  # fmt: skip
