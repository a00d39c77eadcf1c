"""The use case of `topodiag watch`: the collector's loop on this node, with its errors as ours."""

from __future__ import annotations

from collections.abc import Callable

from topodiag.lazy import dataclass
from topodiag.model.errors import InputError


@dataclass(frozen=True, slots=True)
class Watching:
    """Where changes go (`folder`) and the exposition (`textfile`); how often in seconds, how large a file in bytes, how
    many files, how many samples (0: no end)."""

    folder: str | None
    textfile: str | None
    every_s: float
    size: int
    keep: int
    times: int


def watch(asked: Watching, tell: Callable[[str], None]) -> None:
    """Watch this node until SIGTERM, SIGINT or SIGHUP. Raises InputError for a place that cannot be written to."""
    from topodiag_probes.watch import command  # noqa: PLC0415 - a captured bundle needs no collector

    options = command.Options(asked.folder, asked.textfile, asked.every_s, asked.size, asked.keep, asked.times)
    try:
        command.watch(options, command.until_signal(), tell)
    except command.RefusedError as refusal:
        where, _, why = str(refusal).rpartition(": ")
        raise InputError(where or "watch", why, hint="make it, or name another") from None
