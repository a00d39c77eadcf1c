"""Puts a finished page on a stream, in colour or not."""

from __future__ import annotations

from io import StringIO
from typing import TextIO

from rich.console import Console

from topodiag.report.text import Page


def print_page(page: Page, stream: TextIO) -> None:
    """Write the lines as they are laid out; only the sixteen colours that every terminal has, so its theme holds.

    rich draws into memory, because on a closed pipe it would end the program by itself.
    """
    drawn = StringIO()
    console = Console(
        file=drawn,
        width=page.width,
        color_system="standard" if page.style.color else None,
        force_terminal=page.style.color,
        no_color=not page.style.color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for line in page.lines:
        console.print(line, soft_wrap=True)
    stream.write(drawn.getvalue())
