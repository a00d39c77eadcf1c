"""Puts a finished page on a stream, in colour or not."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console

from topodiag.report.text import Page


def print_page(page: Page, stream: TextIO) -> None:
    """Write the lines as they are laid out; only the sixteen colours that every terminal has, so its theme holds."""
    console = Console(
        file=stream,
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
