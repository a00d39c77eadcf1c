"""What a report is: it turns one Result into text on a stream. It judges nothing and reads no file.

Adding one is a file with a function `write` in `formats` and a line in `registry.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from topodiag.lazy import dataclass
from topodiag.model.result import Result

MIN_WIDTH = 40
"""Columns below which nothing can be laid out; narrower terminals get lines of this length."""


@dataclass(frozen=True, slots=True)
class Style:
    """How the reader's end wants it. `width` in terminal columns; `verbose` above 0 folds nothing away."""

    width: int = 80
    color: bool = False
    ascii: bool = False
    verbose: int = 0
    quiet: bool = False
    exit_code: int = 0
    """What the program will exit with, where it is known: the last line of a page says it."""
    names: Callable[[str], str] = str
    """How a text names the files of the evidence."""


Report = Callable[[Result, TextIO, Style], None]
"""Writes a result on a stream. It raises nothing of its own for any content; errors of the stream pass through."""
