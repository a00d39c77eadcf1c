"""The sizes of parallel dimensions as options, for every command that takes a layout: from the table, one each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from topodiag.cli.options import Command
from topodiag.cli.params import Count
from topodiag.model.dimensions import DIMENSIONS, NAMES, ORDER, flags

if TYPE_CHECKING:
    from topodiag.model.layout import Layout

_MOST = 1 << 20


def size_options(defaults: Mapping[str, int] | None = None) -> Callable[[Command], Command]:
    """An option per dimension; those that are given, or have a default, reach the command as its argument `sizes`."""
    chosen = defaults or {}

    def add(command: Command) -> Command:
        @wraps(command)
        def wrapped(*args: Any, **given: Any) -> None:
            sizes = {name: size for name in NAMES if (size := given.pop(name)) is not None}
            command(*args, sizes=sizes, **given)

        made: Command = wrapped
        for each in reversed(DIMENSIONS):
            what = each.help + (" (default: what the others leave)." if each.name == "dp" else ".")
            made = click.option(
                f"--{each.name}", type=Count(1, _MOST), metavar="N", help=what,
                default=chosen.get(each.name), show_default=each.name in chosen,
            )(made)  # fmt: skip
        return made

    return add


def layout_of(sizes: Mapping[str, int], order: str) -> Layout | None:
    """The layout that the options declare, None where they declare none. Raises click.UsageError."""
    from topodiag.model.layout import Layout  # noqa: PLC0415 - not for the help

    if not sizes:
        if order:
            raise click.UsageError(f"--order goes with {flags()}.")
        return None
    return Layout(**sizes, order=order or ORDER)
