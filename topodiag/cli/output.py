"""Where a report goes, standard output or a file, and the exit code that its findings call for."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from topodiag.cli.errors import CLEAN, FOUND
from topodiag.model.finding import Severity
from topodiag.model.result import Result
from topodiag.writing import replacing


@contextmanager
def opened(path: str | None) -> Iterator[TextIO]:
    """The stream to write to: standard output, also for `-`, or a UTF-8 file that appears whole or not at all."""
    if path is None or path == "-":
        yield sys.stdout
        return
    with replacing(path) as raw, io.TextIOWrapper(raw, encoding="utf-8") as stream:
        yield stream


def verdict(result: Result, fail_on: str) -> int:
    """CLEAN, or FOUND where a finding is at or above this severity (`never`: none is)."""
    if fail_on == "never" or result.worst is None:
        return CLEAN
    return FOUND if result.worst >= Severity[fail_on.upper()] else CLEAN
