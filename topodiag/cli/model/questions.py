"""`topodiag model`: what its commands ask, and the machine that they ask about: a system of the catalogue, evidence of
one, or two links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from topodiag.cli.dimensions import job_option
from topodiag.cli.model.step_options import LAYOUT_OPTIONS, MODEL_OPTIONS, TRAINING_OPTIONS, Trained, trained_options
from topodiag.cli.options import DEFAULT_SYSTEM, Command, Option, Printing, options, plot_options, value_options
from topodiag.cli.output import write_page, write_svg
from topodiag.draw.plot import bars_svg, plot_svg
from topodiag.draw.scale import SIZE, TIME, Mark, Series
from topodiag.lazy import dataclass
from topodiag.report.documents.from_model import Document, from_model
from topodiag.report.text import Page
from topodiag.words.units import percent, spell_time

if TYPE_CHECKING:
    from topodiag.cost.collectives import Link
    from topodiag.cost.tiers import Machine


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """What the options say of the machine."""

    machine: str | None
    system: str | None
    gpu: str
    nics: tuple[int, float] | None
    leaf: int | None
    oversubscription: float | None
    inside: Link | None = None
    outside: Link | None = None
    gpus_per_node: int = 8

    def of_nodes(self, nodes: int) -> Machine:
        """The machine with this number of nodes. Raises ModelError, InputError, UsageError."""
        from topodiag.app.case.system import machine_of  # noqa: PLC0415 - heavy from here on
        from topodiag.app.model import machine_of_links  # noqa: PLC0415

        if self.inside is not None:
            return machine_of_links(self.inside, self.outside, self.gpus_per_node, nodes)
        if self.outside is not None:
            raise click.UsageError("--outside goes with --inside.")
        if self.machine is not None and self.system is not None:
            raise click.UsageError("--machine and --system exclude each other.")
        return machine_of(
            self.machine or self.system or DEFAULT_SYSTEM, nodes, gpu=self.gpu, nics=self.nics,
            nodes_per_leaf=self.leaf or 0, oversubscription=self.oversubscription or 1.0,
        )  # fmt: skip


def machine_options(*, links: bool = True) -> Option:
    """`asked`: the options of a system or evidence of one, and where `links` a machine of two links."""
    of_links = ("inside", "outside", "gpus_per_node") if links else ()
    of_system = ("system", "machine", "gpu", "nics", "leaf", "oversubscription")
    return value_options("asked", MachineOptions, options(*of_system, *of_links, of="model"))


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


COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "send_recv")


@click.command(cls=Command)
@click.argument("collective", type=click.Choice(COLLECTIVES), default="all_reduce", metavar="COLLECTIVE")
@options("size", "placement", "against", "algo", "measured", machine_options(), "sizes", of="model collective")
@plot_options
def collective(  # noqa: PLR0917 - one parameter per option
    collective: str,
    size: int,
    placement: tuple[int, float] | None,
    against: tuple[int, float] | None,
    algo: str,
    measured: float | None,
    asked: MachineOptions,
    sizes: tuple[int, ...],
    svg: str | None,
    explain: bool,
    printing: Printing,
) -> None:
    """Compare a collective under two placements: time, bandwidth and limit of each, and what the better one gains.

    COLLECTIVE is all_reduce (the default), all_gather, reduce_scatter, broadcast, reduce, all_to_all or send_recv. With
    --measured the report says which placement explains the measured time.

    \b
    Example
      topodiag model collective all_reduce --placement 2x8 --versus 16x1
    """
    from topodiag.app.model import ask_collective  # noqa: PLC0415
    from topodiag.report.model.collective import draw_placements, placement_series, placements_json  # noqa: PLC0415

    nodes = max(placement[0] if placement else 1, against[0] if against else 1)
    machine = asked.of_nodes(max(nodes, 2))
    placements, reading = ask_collective(
        machine, collective, size, algorithm=algo, measured_us=measured,
        placement=(placement[0], int(placement[1])) if placement else None,
        against=(against[0], int(against[1])) if against else None,
    )  # fmt: skip
    inputs = {"collective": collective, "size": size, "algorithm": algo, "measured_us": measured}

    draw_or_dump(
        lambda page: draw_placements(page, placements, machine, sizes, reading, explain=explain),
        lambda: placements_json(placements, machine, reading, inputs),
        printing=printing, svg=svg, series=lambda: placement_series(placements, sizes),
        title=f"{collective} on {machine.name}",
    )  # fmt: skip


@click.command(cls=Command)
@options("nodes", "size", "sizes", machine_options(), of="model hierarchy")
@plot_options
def hierarchy(  # noqa: PLR0917 - one parameter per option
    nodes: int,
    size: int,
    sizes: tuple[int, ...],
    asked: MachineOptions,
    svg: str | None,
    explain: bool,
    printing: Printing,
) -> None:
    """Compare flat and hierarchical all-reduce by size: what each gains, and what limits it, latency or bandwidth.

    \b
    Example
      topodiag model hierarchy --system dgx-h100 --nodes 8
    """
    from topodiag.app.model import ask_hierarchy  # noqa: PLC0415
    from topodiag.report.model.collective import (  # noqa: PLC0415
        draw_hierarchy,
        hierarchy_json,
        hierarchy_marks,
        hierarchy_series,
    )

    machine = asked.of_nodes(nodes)
    answer = ask_hierarchy(machine)
    inputs = {"nodes": nodes, "size": size}

    draw_or_dump(
        lambda page: draw_hierarchy(page, answer, machine, size, sizes, explain=explain),
        lambda: hierarchy_json(answer, machine, size, sizes, inputs),
        printing=printing,
        svg=svg,
        series=lambda: hierarchy_series(answer, sizes),
        marks=lambda: hierarchy_marks(answer),
        title=f"all_reduce over {machine.gpus} GPUs, {machine.name}",
    )


@click.command(cls=Command)
@trained_options(job_option, MODEL_OPTIONS, LAYOUT_OPTIONS, TRAINING_OPTIONS)
@machine_options()
@plot_options
def step(  # noqa: PLR0917 - one parameter per option
    trained: Trained,
    nodes: int,
    sizes: dict[str, int],
    order: tuple[str, ...],
    asked: MachineOptions,
    svg: str | None,
    explain: bool,
    printing: Printing,
) -> None:
    """Estimate a training step: what each parallel dimension costs, which link carries it, and the worst placement.

    The model is a transformer of equal layers. The job has tp x cp x dp x pp GPUs.

    \b
    Examples
      topodiag model step --params 70B --tp 8 --pp 4 --nodes 16
      topodiag model step --job train.sh --system gb200-nvl72
    """
    from topodiag.app.model import ask_step  # noqa: PLC0415
    from topodiag.report.model.step import draw_step, parts, step_json  # noqa: PLC0415

    if trained.serves:
        raise click.UsageError("--job starts a server: it trains nothing, and has no step to price.")
    machine = asked.of_nodes(nodes)
    priced, peak, assumed = ask_step(machine, trained.given, sizes, order)
    layout, work = priced.layout, priced.work
    inputs = {
        **trained.given, "global_batch": work.global_batch, "zero": work.zero, "shard": work.shard,
        "peak_tflops": peak.tflops, "nodes": nodes, **layout.all_sizes, "order": "-".join(order),
    }  # fmt: skip
    title = f"{spell_time(priced.time_us)} per step: {layout.world} GPUs, {machine.name}"
    bars = [(name, us / 1000, f"{spell_time(us)}  {percent(us / priced.time_us)}") for name, us, _ in parts(priced)]

    draw_or_dump(
        lambda page: draw_step(page, priced, assumed, explain=explain),
        lambda: step_json(priced, assumed, inputs),
        printing=printing, svg=svg, series=tuple, title=title,
        picture=lambda: bars_svg(bars, title=title),
    )  # fmt: skip
