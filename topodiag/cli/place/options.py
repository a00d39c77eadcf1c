"""What `topodiag place` commands share on the command line: the cluster, the layout, the parallel dimensions, what is
trained, and the picture of a layout.

A command takes them with `place_options` as one argument, `asked`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from topodiag.cli.dimensions import job_option, layout_of, order_option, size_options
from topodiag.cli.errors import print_note
from topodiag.cli.model.step_options import TRAINED, Trained, trained_by
from topodiag.cli.options import JOB, option, options, value_options
from topodiag.cli.params import EVIDENCE
from topodiag.lazy import dataclass
from topodiag.model.layout import flags
from topodiag.words.text import clean

if TYPE_CHECKING:
    from topodiag.app.case.placement import PlaceOptions
    from topodiag.model.cluster import Assignment, Cluster
    from topodiag.placement.groups import Talk
    from topodiag.placement.view import Look
    from topodiag.report.text import Page

_CLUSTER = ("topology", "bundles", "system", "machine", "gpu", "nics", "nodes", "leaf", "racks", "oversubscription",
            "nodelist", "exclude", "free")  # fmt: skip
_LAYOUT = ("hostfile", "rankfile", "slurm_hostfile", "torchrun", "map_", "logs", "rule")
_NAMES = (*_CLUSTER, *_LAYOUT, "sizes", "order", "groups", "world_size", "paths")
LAUNCHERS = ("slurm-hostfile", "slurm-flags", "rankfile", "hostfile", "mpich", "torchrun", "kubernetes")
"""Formats of a map that launchers read."""


def _one_of(machine: str | None, system: str | None) -> str:
    if machine is not None and system is not None:
        raise click.UsageError("--machine and --system exclude each other.")
    return machine or system or ""


def _placed(**left: Any) -> PlaceOptions:
    """The options as values; what of the paths is left aside is named on standard error. `left` has every name of the
    shared options."""
    from topodiag.app.case.place_paths import place_options as placed  # noqa: PLC0415 - heavy from here on

    left["system"] = _one_of(left.pop("machine"), left["system"])
    if left["topology"] and Path(left["topology"]).is_dir():
        raise click.UsageError("--topology is a file of the cluster; a folder of bundles goes in as --bundles.")
    layout, paths = layout_of(left.pop("sizes"), left.pop("order")), left.pop("paths")
    left |= {"map": left.pop("map_"), "ranks": left.pop("world_size"), "nodelist": ",".join(left["nodelist"])}
    of_job = JOB in click.get_current_context().meta
    least = layout.least_world if layout is not None and of_job else 0
    asked = placed(left, paths, layout=layout, least_ranks=least)
    for line in asked.left:
        print_note(f"note: {clean(line)}")
    return replace(asked, left=())


place_options = value_options(
    "asked",
    _placed,
    options(
        click.argument("paths", metavar="[PATH]...", nargs=-1, type=EVIDENCE),
        options(*_CLUSTER, of="place"), *_LAYOUT, size_options(), order_option, "groups", "world_size",
    ),
    _NAMES,
)  # fmt: skip
"""The shared options, handed to the command as its argument `asked`."""


_SETTINGS = click.Command("model", params=TRAINED)
"""The options of `topodiag model step` that say what is trained, as one option takes them."""


def _trained(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> Trained:
    words = tuple(f"--{word.strip()}" for value in values for word in value.split(",") if word.strip())
    try:
        given = _SETTINGS.make_context("model", list(words), default_map=ctx.default_map).params
    except click.UsageError as error:
        more = "write it like params=7B,layers=32; topodiag model step --help lists all"
        raise click.BadParameter(f"{error.format_message().rstrip('.')}; {more}.", ctx, param) from None
    return trained_by(ctx, given, is_given=bool(words))


work_options = options(job_option, option("trained", callback=_trained))


def training_of(asked: PlaceOptions, trained: Trained) -> Mapping[str, Any] | None:
    """What is trained, None where no option says it. Raises UsageError where nothing says how it is laid out."""
    if trained.is_given and asked.layout is None:
        raise click.UsageError(f"--model goes with {flags()}.")
    return trained.asked


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
        from topodiag.draw.layouts import look_svg  # noqa: PLC0415

        write_svg(self.svg, look_svg(look))


picture_options = value_options("pictured", Pictured, options("picture", "dimension", "svg"))
"""The options; they reach the command as its argument `pictured`."""
