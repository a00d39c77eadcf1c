"""Values of options that click does not know: durations, sizes, counts, links, NICs, placements, evidence."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from topodiag.words.own_data import patterns

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from topodiag.cost.collectives import Link

    _Base = click.ParamType[Any]
else:
    _Base = click.ParamType  # generic only since click 8.5

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0}
_LIKE = patterns("cli/params", "values")
MAX_SECONDS = 3600.0
"""An hour: more is a slip of the keyboard, and no probe runs that long."""


class Spelt(_Base):
    """A value as people write it, of which `read` makes one; it raises ValueError with what is wrong with the words.
    What is no text (a default, what --job says) is of this `kind`."""

    def __init__(self, name: str, read: Callable[[str], Any], kind: Callable[[Any], Any]) -> None:
        self.name, self.read, self.kind = name, read, kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return self.kind(value)
        try:
            return self.read(value.strip())
        except ValueError as error:
            self.fail(f"{value!r}{error}", param, ctx)


def _matched(form: str, text: str, wrong: str) -> re.Match[str]:
    match = _LIKE[form].fullmatch(text)
    if match is None:
        raise ValueError(wrong)
    return match


def seconds(text: str) -> float:
    """Seconds from `5`, `5s`, `500ms` or `1m`."""
    match = _matched("duration", text, " is not a duration; write 5, 5s, 500ms or 1m.")
    duration = float(match[1]) * _UNITS[match[2]]
    if duration > MAX_SECONDS:
        raise ValueError(" is more than an hour.")
    return duration


PLACE = click.Path(readable=False)
"""A name that the shell completes; whether it can be used is judged where it is opened."""

FILE = click.Path(readable=False)
"""The same of a file to write: one that cannot be written is refused before any work is done."""
FIXTURE = "fixture:"


class Evidence(click.Path):
    """What a command reads: a path, `-`, or `fixture:NAME`, of which the shell completes the names."""

    def __init__(self) -> None:
        super().__init__(readable=False)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only when the shell asks

        if incomplete.startswith(FIXTURE):
            from topodiag.app.fixtures import shipped  # noqa: PLC0415 - only when the shell asks

            return [
                CompletionItem(name) for fixture in shipped() if (name := FIXTURE + fixture.name).startswith(incomplete)
            ]
        if incomplete and FIXTURE.startswith(incomplete) and not glob.glob(glob.escape(incomplete) + "*"):
            return [CompletionItem(FIXTURE)]
        return super().shell_complete(ctx, param, incomplete)


EVIDENCE = Evidence()


class Count(click.IntRange):
    """A whole number within bounds, which the error alone names: in the help they would be noise."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number from {self.min} to {self.max}.", param, ctx)

    def _describe_range(self) -> str:
        return ""


_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
MAX_SIZE = 1 << 50
MAX_COUNT = 1e16


def size(text: str) -> int:
    """Bytes from `4K`, `256MiB`, `1G` (powers of two, as nccl-tests reads them) or `16MB` (powers of ten)."""
    match = _matched("size", text, " is not a size; write 4K, 256MiB or 1G (powers of two), or 16MB.")
    unit, tail = match[2].lower(), (match[3] or "").lower()
    decimal = tail == "b" and unit != ""
    times = 1000 ** "kmgt".index(unit) * 1000 if decimal else _BINARY[unit]
    number = round(float(match[1]) * times)
    if not 1 <= number <= MAX_SIZE:
        raise ValueError(" is not between 1 byte and 1 PiB.")
    return number


def sizes(text: str) -> tuple[int, ...]:
    """Powers of two from `4K:1G`, both ends among them."""
    first, colon, last = text.partition(":")
    if not colon:
        raise ValueError(" is not a range of sizes; write 4K:1G.")
    low, high = (SIZE.convert(end, None, None) for end in (first, last))
    if low > high:
        raise ValueError(": the first size is the greater one.")
    return tuple(low << power for power in range(51) if low << power <= high)


def count(text: str) -> float:
    """A count from `70e9`, `70B`, `7.5M` or `4096`."""
    match = _matched("count", text, " is not a count; write 70e9 or 70B.")
    number = float(match[1]) * {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}[match[2].lower()]
    if not 1 <= number <= MAX_COUNT:
        raise ValueError(f" is not between 1 and {MAX_COUNT:g}.")
    return number


def micros(text: str) -> float:
    """Microseconds from `150ms`, `42us` or `1.2s`."""
    wrong = " is not a time; write 150ms, 42us or 1.2s."
    match = _matched("time", text, wrong)
    if float(match[1]) <= 0:
        raise ValueError(wrong)
    return float(match[1]) * {"us": 1.0, "ms": 1e3, "s": 1e6}[match[2]]


def link_type(called: str = "") -> Spelt:
    """Of a link from `NVLink=1.0,300` or `1.0,300`: latency in us, bandwidth in GB/s."""

    def link(text: str) -> Link:
        from topodiag.app.model import Link as Made  # noqa: PLC0415 - not for the help

        match = _matched("link", text, " is not a link; write NAME=US,GBS like NVLink=1.0,300.")
        alpha, gbs = float(match[2]), float(match[3])
        if not 1e-6 <= gbs <= 1e9 or alpha > 1e9:
            raise ValueError(": a bandwidth is from 1e-6 to 1e9 GB/s and a latency below 1e9 us.")
        return Made(alpha, gbs, (match[1] or called).strip())

    return Spelt("link", link, lambda given: given)


class Ratio(click.FloatRange):
    """A number within bounds, which no comparison with `nan` passes; the error alone names the bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        with suppress(click.BadParameter):
            if isfinite(number := float(super().convert(value, param, ctx))):
                return number
        self.fail(f"{value!r} is not a number from {self.min:g} to {self.max:g}.", param, ctx)

    def _describe_range(self) -> str:
        return ""


def pair_type(what: str, example: str, *, whole: bool) -> Spelt:
    """Of `8x400` as (8, 400.0), both above 0."""

    def pair(text: str) -> tuple[int, float]:
        wrong = f" is not {what}; write it like {example}."
        match = _matched("pair", text, wrong)
        if int(match[1]) < 1 or float(match[2]) <= 0 or (whole and "." in match[2]):
            raise ValueError(wrong)
        return int(match[1]), float(match[2])

    return Spelt(what, pair, tuple)


SIZE = Spelt("size", size, int)
TYPES: Mapping[str, Any] = {
    "place": PLACE, "file": FILE, "evidence": EVIDENCE, "folder": click.Path(file_okay=False),
    "duration": Spelt("duration", seconds, float), "size": SIZE, "sizes": Spelt("range", sizes, tuple),
    "number": Spelt("count", count, float), "micros": Spelt("time", micros, float),
    "nics": pair_type("NICs", "8x400", whole=False),
    "placement": pair_type("a placement", "1x8 (nodes x ranks per node)", whole=True), "count": Count, "ratio": Ratio,
    "link": link_type,
}  # fmt: skip
"""By its word in options.toml; what takes bounds or a name is a class."""
