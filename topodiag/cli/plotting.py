"""`--plot FILE.svg`: refused before the work where it cannot be written, then drawn."""

from __future__ import annotations

from collections.abc import Callable

import click

from topodiag.cli.params import PLACE

END = ".svg"
_HINT = "A browser shows it; for a bitmap: rsvg-convert FILE.svg -o FILE.png"


def _checked(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    if not value.lower().endswith(END):
        raise click.BadParameter(f"{value!r} does not end in {END}. {_HINT}", ctx, param)
    from topodiag.writing import check_writable  # noqa: PLC0415 - not for the help

    check_writable(value)
    return value


plot_option = click.option(
    "--plot", "plot", metavar="FILE.svg", type=PLACE, callback=_checked, help="Draw the plot into this file too."
)


def write_plot(path: str, svg: Callable[[], str]) -> None:
    """Write the plot; the file appears whole or not at all. Raises InputError."""
    from topodiag.writing import replacing  # noqa: PLC0415

    with replacing(path) as stream:
        stream.write(svg().encode())
