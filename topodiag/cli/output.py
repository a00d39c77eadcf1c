"""Where a report goes: standard output, or a file that appears whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from topodiag.model.errors import InputError


def check_writable(path: str | None) -> None:
    """Fail now rather than after a scan: the folder must be there, and the file must not be a folder."""
    if path in {None, "-"}:
        return
    place = Path(str(path))
    if place.is_dir():
        raise InputError(str(path), "is a folder, not a file to write to")
    if not place.parent.is_dir():
        raise InputError(str(path), "cannot be written: its folder does not exist")
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise InputError(str(path), "cannot be written: permission denied")


@contextmanager
def opened(path: str | None) -> Iterator[TextIO]:
    """The stream to write to. A regular file is written beside its place and then moved there, as the textfile
    collector of node_exporter asks; a device or a pipe is written directly."""
    if path is None or path == "-":
        yield sys.stdout
        return
    place = Path(path)
    try:
        if place.exists() and not place.is_file():
            with place.open("w", encoding="utf-8") as stream:
                yield stream
            return
        fresh = place.with_name(f".{place.name}.{os.getpid()}.tmp")
        try:
            with fresh.open("w", encoding="utf-8") as stream:
                yield stream
            fresh.replace(place)
        finally:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror or error}") from None
