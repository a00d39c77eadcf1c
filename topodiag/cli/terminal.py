"""What the reader's end can show: colour, width and characters, from the options, the environment and the stream."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from typing import TextIO

from topodiag.report.interface import MIN_WIDTH, Style

DEFAULT_WIDTH = 80
"""Columns when nothing tells: what a serial console, a log and a mail show."""
MAX_WIDTH = 400


def style_for(
    stream: TextIO,
    *,
    color: str = "auto",
    ascii_only: bool = False,
    width: int | None = None,
    verbose: int = 0,
    quiet: bool = False,
    exit_code: int = 0,
    env: Mapping[str, str] | None = None,
) -> Style:
    """The style for a stream. Options beat the environment, NO_COLOR beats FORCE_COLOR and CLICOLOR_FORCE."""
    given = os.environ if env is None else env
    return Style(
        width=width if width is not None else _width(stream, given),
        color=_color(stream, color, given),
        ascii=ascii_only or not _is_utf8(stream, given),
        verbose=verbose,
        quiet=quiet,
        exit_code=exit_code,
    )


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False


def _color(stream: TextIO, choice: str, env: Mapping[str, str]) -> bool:
    if choice != "auto":
        return choice == "always"
    if env.get("NO_COLOR"):
        return False
    if any(env.get(name, "0") not in {"", "0"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return env.get("TERM") != "dumb" and is_terminal(stream)


def _width(stream: TextIO, env: Mapping[str, str]) -> int:
    columns = env.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and 0 < len(columns) < 6 and int(columns) > 0:
        width = int(columns)
    elif is_terminal(stream):
        try:
            width = os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH
        except (OSError, ValueError):
            width = DEFAULT_WIDTH
    else:
        width = DEFAULT_WIDTH
    return min(max(width, MIN_WIDTH), MAX_WIDTH)


def _is_utf8(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Whether the reader takes UTF-8. Python writes UTF-8 under LC_ALL=C all the same, so that is asked first."""
    if env.get("LC_ALL") in {"C", "POSIX"} and not env.get("PYTHONIOENCODING"):
        return False
    try:
        return codecs.lookup(stream.encoding or "ascii").name == "utf-8"
    except LookupError:
        return False
