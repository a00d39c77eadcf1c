"""The use case of `topodiag watch`: the collector's loop on this node, with its errors as ours."""

from __future__ import annotations

from collections.abc import Callable

from topodiag.model.errors import InputError


def watch(
    folder: str | None,
    textfile: str | None,
    *,
    every_s: float,
    size: int,
    keep: int,
    times: int,
    tell: Callable[[str], None],
) -> None:
    """Watch this node until SIGTERM, SIGINT or SIGHUP: changes go to `folder`, the exposition to `textfile`, every so
    many seconds, in `keep` files of `size` bytes, `times` times (0: no end). Raises InputError for a place that cannot
    be written to."""
    from topodiag_probes.watch import command  # noqa: PLC0415 - a captured bundle needs no collector

    options = command.Options(folder, textfile, every_s, size, keep, times)
    try:
        command.watch(options, command.until_signal(), tell)
    except command.RefusedError as refusal:
        where, _, why = str(refusal).rpartition(": ")
        raise InputError(where or "watch", why, hint="make it, or name another") from None
