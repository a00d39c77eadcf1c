"""The layout of a job as options, for every command that takes one: a size a dimension, and the job's own files."""

from __future__ import annotations

from collections.abc import Mapping

import click

from topodiag.cli.options import JOB, Option, option, options, value_options
from topodiag.cli.params import Count
from topodiag.model.layout import DIMENSIONS, NAMES, ORDER, JobSettings, Layout, flags

_MOST = 1 << 20


def _read_job(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
    """What the files say is the default of each option that they speak of: an option that is given goes first."""
    if not values or ctx.resilient_parsing:
        return
    from topodiag.app.job_file import declared  # noqa: PLC0415 - heavy from here on

    settings: JobSettings = declared(values)
    order = {"order": settings.order} if settings.sizes and settings.order != ORDER else {}
    overlap = {"overlap": [f"{name}=0" for name in settings.waited_for]} if settings.waited_for else {}
    world = {"world_size": settings.world} if settings.world else {}
    if settings.world and ctx.command.name == "step":
        world = {"nodes": -(-settings.world // 8)}  # the GPUs of most systems; --nodes goes first
    split = {"tp": 1} if settings.sizes or "zero" in settings.options else {}  # where the file names no other
    ctx.default_map = {
        **(ctx.default_map or {}), **(split if ctx.command.name == "step" else {}), **settings.sizes, **order,
        **settings.options, **overlap, **world,
    }  # fmt: skip
    ctx.meta[JOB] = settings


job_option = option("job", callback=_read_job)
order_option = click.option(
    "--order", metavar="DIMS", default="", help=f"Order of the dimensions over the ranks, fastest first: {ORDER}."
)


def size_options(defaults: Mapping[str, int] | None = None) -> Option:
    """An option per dimension; those that are given, or have a default, reach the command as its argument `sizes`."""
    chosen = defaults or {}

    listed = (
        click.option(
            f"--{dimension.name}", type=Count(1, _MOST), metavar="N", default=chosen.get(dimension.name),
            help=dimension.help + (" (default: what the others leave)." if dimension.name == "dp" else "."),
            show_default=dimension.name in chosen,
        )
        for dimension in DIMENSIONS
    )  # fmt: skip
    return value_options("sizes", _sizes_of, options(*listed), NAMES)


def _sizes_of(**sizes: int | None) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if size is not None}


def layout_of(sizes: Mapping[str, int], order: str) -> Layout | None:
    """The layout that the options declare, None where they declare none. Raises click.UsageError."""
    if not sizes:
        if order:
            raise click.UsageError(f"--order goes with {flags()}.")
        return None
    return Layout(**sizes, order=order or ORDER)
