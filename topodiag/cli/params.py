"""Values on the command line that click does not know: durations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    _Seconds = click.ParamType[float]
else:
    _Seconds = click.ParamType  # generic only since click 8.5

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
