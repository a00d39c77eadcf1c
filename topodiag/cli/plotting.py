"""Writes the picture of `--svg FILE.svg`."""

from __future__ import annotations

from collections.abc import Callable


def write_svg(path: str, draw: Callable[[], str]) -> None:
    """Write the picture; the file appears whole or not at all. Raises InputError."""
    from topodiag.writing import replacing  # noqa: PLC0415 - not for the help

    with replacing(path) as stream:
        stream.write(draw().encode())
