"""`topodiag model hierarchy`: flat against hierarchical all-reduce."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.model.options import link_options, machine_from, options, system_options
from topodiag.cli.model.params import Size, Sizes
from topodiag.cli.params import Count, Printing, format_option, page_options
from topodiag.cli.plotting import plot_option

if TYPE_CHECKING:
    from topodiag.cost.alpha_beta import Link


@click.command()
@click.option("--nodes", type=Count(1, 100_000), default=4, show_default=True, metavar="N", help="Nodes of the job.")
@click.option("--size", type=Size(), default="1GiB", show_default=True, metavar="SIZE", help="The size shown first.")
@click.option(
    "--sizes", type=Sizes(), default="256K:1G", show_default=True, metavar="FROM:TO",
    help="The sweep: by default 2^16 to 2^28 parameters of 4 bytes.",
)  # fmt: skip
@options(system_options, link_options)
@plot_option
@click.option("--explain", is_flag=True, help="Show each term of the derivation.")
@format_option
@page_options
@click.pass_obj
def hierarchy(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    nodes: int,
    size: int,
    sizes: tuple[int, ...],
    system: str,
    gpu: str,
    nics: tuple[int, float] | None,
    leaf: int | None,
    oversubscription: float,
    inside: Link | None,
    outside: Link | None,
    per_node: int,
    plot: str | None,
    explain: bool,
    format_: str,
    printing: Printing,
) -> None:
    """Flat against hierarchical all-reduce by size: what each gains, and where latency or bandwidth binds."""
    from topodiag.app.model import ask_hierarchy  # noqa: PLC0415
    from topodiag.cli.model.output import draw_or_dump  # noqa: PLC0415 - heavy from here on
    from topodiag.report.model.hierarchy import (  # noqa: PLC0415
        draw_hierarchy,
        hierarchy_json,
        hierarchy_marks,
        hierarchy_series,
    )
    from topodiag.report.text import Page  # noqa: PLC0415

    how = {"gpu": gpu, "nics": nics, "oversubscription": oversubscription, "inside": inside, "outside": outside}
    machine = machine_from(system, nodes, leaf=leaf, per_node=per_node, **how)  # type: ignore[arg-type]
    made = ask_hierarchy(machine)
    inputs = {"nodes": nodes, "size": size}

    def draw(page: Page) -> None:
        draw_hierarchy(page, made, machine, size, sizes, explain=explain)

    draw_or_dump(
        draw,
        lambda: hierarchy_json(made, machine, size, sizes, inputs),
        format_=format_, printing=printing,
        plot=plot, series=lambda: hierarchy_series(made, sizes), marks=lambda: hierarchy_marks(made),
        title=f"all_reduce over {machine.gpus} GPUs, {machine.name}",
    )  # fmt: skip
