"""The names of the running probes beside a spinner on standard error, while a terminal looks on; else silence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from topodiag.cli.terminal import is_terminal, style_for
from topodiag.report.text import clean

Progress = Callable[[str, str, float], None]
SHOWN = 4
"""Names on the line; with so many running, more would only flicker."""


@contextmanager
def spinner(*, color: str, ascii_only: bool, quiet: bool) -> Iterator[Progress | None]:
    """A callback for the collector's threads; None when nobody watches."""
    if quiet or not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only for someone who watches
    from rich.text import Text  # noqa: PLC0415

    style = style_for(sys.stderr, color=color, ascii_only=ascii_only)
    console = Console(stderr=True, no_color=not style.color, highlight=False, markup=False, emoji=False)
    lock = Lock()
    running: dict[str, None] = {}
    finished = 0

    def line() -> Text:
        names = [clean(name, ascii_only=style.ascii, limit=40) for name in list(running)[:SHOWN]]
        rest = f" +{len(running) - SHOWN}" if len(running) > SHOWN else ""
        words = f"looking at this node: {finished} done, running {', '.join(names)}{rest}" if names else "judging"
        return Text(words, overflow="crop", no_wrap=True)

    with console.status(Text("looking at this node"), spinner="line" if style.ascii else "dots") as status:

        def tell(event: str, probe: str, seconds: float) -> None:
            nonlocal finished
            with lock:
                if event == "start":
                    running[probe] = None
                else:
                    running.pop(probe, None)
                    finished += 1
                status.update(line())

        yield tell
