"""What commands share on the command line: values that click does not know, and the options of every report."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from topodiag.report.interface import Style

    _Seconds = click.ParamType[float]
else:
    _Seconds = click.ParamType  # generic only since click 8.5

Command = Callable[..., None]

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) *(ms|s|m|)", re.ASCII)
MAX_SECONDS = 3600.0
"""An hour: more is a slip of the keyboard, and no probe runs that long."""


class Duration(_Seconds):
    """Seconds as a float from `5`, `5s`, `500ms` or `1m`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        match = _DURATION.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a duration; write 5, 5s, 500ms or 1m.", param, ctx)
        seconds = float(match[1]) * _UNITS[match[2]]
        if seconds > MAX_SECONDS:
            self.fail(f"{value!r} is more than an hour.", param, ctx)
        return seconds


PLACE = click.Path(readable=False)
"""A name that the shell completes; whether it can be used is judged where it is opened."""

FAIL_ON = ("info", "warning", "error", "never")


class Count(click.IntRange):
    """A range whose bounds are told by the error alone: in the help they would be noise."""

    told = False

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        self.told = True
        try:
            return int(super().convert(value, param, ctx))
        finally:
            self.told = False

    def _describe_range(self) -> str:
        return super()._describe_range() if self.told else ""


format_option = click.option(
    "--format",
    "format_",
    type=click.Choice(("table", "json")),
    default="table",
    show_default=True,
    help="Output format.",
)
output_option = click.option("--output", metavar="FILE", type=PLACE, help="Write to a file instead of standard output.")
color_option = click.option(
    "--color", type=click.Choice(("auto", "always", "never")), default="auto", show_default=True, help="Colour."
)
ascii_option = click.option("--ascii", "ascii_only", is_flag=True, help="Only ASCII characters.")
width_option = click.option(
    "--width", type=Count(40, 400), metavar="N", help="Columns (default: the terminal's, else 80)."
)
verbose_option = click.option("--verbose", "-v", count=True, help="Fold nothing away.")
fail_on_option = click.option(
    "--fail-on", type=click.Choice(FAIL_ON), default="error", show_default=True, help="Exit 1 from this severity on."
)


@dataclass(frozen=True, slots=True)
class Printing:
    """Where and how a command prints, as its options say."""

    output: str | None
    color: str
    ascii_only: bool
    width: int | None
    quiet: bool
    verbose: int

    def style(self, stream: TextIO) -> Style:
        from topodiag.cli.terminal import style_for  # noqa: PLC0415 - not for the help

        return style_for(
            stream,
            color=self.color,
            ascii_only=self.ascii_only,
            width=self.width,
            verbose=self.verbose,
            quiet=self.quiet,
        )


def report_options(command: Command) -> Command:
    """For commands that print findings: `printing` and `fail_on`."""
    quiet = click.option("--quiet", "-q", is_flag=True, help="Only the verdict and the findings; no progress.")
    return _printing(
        command, output_option, fail_on_option, color_option, ascii_option, width_option, quiet, verbose_option
    )


def page_options(command: Command) -> Command:
    """For commands that print no findings: `printing`."""
    return plain_page_options(width_option(command))


def plain_page_options(command: Command) -> Command:
    """The same for a command that has a `width` option of its own."""
    quiet = click.option("--quiet", "-q", is_flag=True, help="Only the verdict.")
    return _printing(command, output_option, color_option, ascii_option, quiet, verbose_option)


def _printing(command: Command, *own: Callable[[Command], Command]) -> Command:
    @wraps(command)
    def wrapped(*args: Any, **given: Any) -> None:
        printing = Printing(**{each.name: given.pop(each.name) for each in fields(Printing)})
        command(*args, printing=printing, **given)

    made: Command = wrapped
    for option in reversed(own):
        made = option(made)
    return made
