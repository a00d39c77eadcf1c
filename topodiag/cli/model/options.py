"""The machine of the model commands: a system of the catalogue, evidence of one, or two links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from topodiag.cli.options import DEFAULT_SYSTEM, Option, Printing, options, value_options
from topodiag.cli.output import write_page, write_svg
from topodiag.draw.plot import plot_svg
from topodiag.draw.scale import SIZE, TIME, Mark, Series
from topodiag.lazy import dataclass
from topodiag.report.documents.from_model import Document
from topodiag.report.text import Page

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
