"""Where a report goes: standard output, or a file."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from topodiag.writing import replacing


@contextmanager
def opened(path: str | None) -> Iterator[TextIO]:
    """The stream to write to: standard output, also for `-`, or a UTF-8 file that appears whole or not at all."""
    if path is None or path == "-":
        yield sys.stdout
        return
    with replacing(path) as raw, io.TextIOWrapper(raw, encoding="utf-8") as stream:
        yield stream
