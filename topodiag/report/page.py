"""Reports that are drawn on a page, and the page on a stream, in colour or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from typing import TextIO

from topodiag.model.result import Result
from topodiag.report.interface import Style
from topodiag.report.places import Places
from topodiag.report.text import EXIT, Page


def print_page(page: Page, stream: TextIO) -> None:
    """Write the lines as they are laid out; the last one says the exit code where it is not 0."""
    if page.style.exit_code:
        _add_exit(page)
    stream.write(_coloured(page) if page.style.color else "".join(line.plain + "\n" for line in page.lines))


def _add_exit(page: Page) -> None:
    """At the end of the last line where there is room, else below it."""
    words = EXIT.replace("1", str(page.style.exit_code))
    room = page.width - len(words)
    if page.lines and page.lines[-1].cell_len <= room:
        page.lines[-1] = page.text(page.pad(page.lines[-1], room), (words, "strong"))
    else:
        page.add("", (words.strip(), "strong"))


def _coloured(page: Page) -> str:
    """Only the sixteen colours that every terminal has, so its theme holds.

    rich draws into memory, because on a closed pipe it would end the program by itself.
    """
    from rich.console import Console  # noqa: PLC0415 - slow to load, and a pipe or a file takes no colour

    drawn = StringIO()
    console = Console(
        file=drawn,
        width=page.width,
        color_system="standard",
        force_terminal=True,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for line in page.lines:
        console.print(line, soft_wrap=True)
    return drawn.getvalue()


Draw = Callable[[Page, Result], None]
"""Adds what a person reads of a result to a page, the line that repeats the answer too."""


def print_drawn(draw: Draw, result: Result, stream: TextIO, style: Style) -> None:
    """The page of a result, on a stream: the terminal has it, and the HTML page keeps it as text."""
    page = Page(replace(style, names=Places(result).in_text))
    draw(page, result)
    print_page(page, stream)
