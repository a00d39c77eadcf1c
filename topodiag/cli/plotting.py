"""`--plot FILE`: refused before the work where it cannot be written, then drawn after its name's end."""

from __future__ import annotations

from collections.abc import Callable

import click

from topodiag.cli.params import PLACE
from topodiag.model.errors import InputError

ENDS = (".svg", ".png")


def _checked(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    if not value.lower().endswith(ENDS):
        raise click.BadParameter(f"{value!r} ends in neither .svg nor .png.", ctx, param)
    from topodiag.writing import check_writable  # noqa: PLC0415 - not for the help

    check_writable(value)
    if value.lower().endswith(".png"):
        from importlib.util import find_spec  # noqa: PLC0415

        if find_spec("matplotlib") is None:
            raise InputError(value, "PNG needs matplotlib", hint=_HINT)
    return value


_HINT = "pip install 'topodiag[plot]', or write FILE.svg and convert it: rsvg-convert FILE.svg -o FILE.png"

plot_option = click.option(
    "--plot", "plot", metavar="FILE", type=PLACE, callback=_checked, help="Draw the plot into FILE.svg or FILE.png too."
)


def write_plot(path: str, svg: Callable[[], str], png: Callable[[], bytes]) -> None:
    """Write the plot that the name's end asks for; the file appears whole or not at all. Raises InputError."""
    from topodiag.report.plot.png import NoPlotLibraryError  # noqa: PLC0415
    from topodiag.writing import replacing  # noqa: PLC0415

    try:
        made = svg().encode() if path.lower().endswith(".svg") else png()
    except NoPlotLibraryError as lacking:
        raise InputError(path, str(lacking), hint=_HINT) from None
    with replacing(path) as stream:
        stream.write(made)
