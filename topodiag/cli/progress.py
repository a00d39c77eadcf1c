"""The names of the running probes beside a spinner on standard error, while a terminal looks on; else silence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from topodiag.cli.terminal import is_terminal, style_for
from topodiag.words.fold import plural
from topodiag.words.text import clean
from topodiag.words.units import spell_bytes

if TYPE_CHECKING:
    from topodiag.app.case.opening import Watch
    from topodiag.cli.options import Printing

Tell = Callable[[str, str, float], None]
SHOWN = 4
"""Names on the line; with so many running, more would only flicker."""


@contextmanager
def spinner(printing: Printing) -> Iterator[Tell | None]:
    """A callback for the collector's threads; None when nobody watches."""
    if printing.quiet or not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only for someone who watches
    from rich.text import Text  # noqa: PLC0415

    style = style_for(sys.stderr, color=printing.color, ascii_only=printing.ascii_only)
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


@contextmanager
def reading(printing: Printing) -> Iterator[Callable[[int, int], None] | None]:
    """A callback for bytes read and bytes in all (0: not known): a bar with MB/s and the time left."""
    if printing.quiet or not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only for someone who watches
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    style = style_for(sys.stderr, color=printing.color, ascii_only=printing.ascii_only)
    console = Console(stderr=True, no_color=not style.color, highlight=False, markup=False, emoji=False)
    words = TextColumn("{task.description}")
    columns = [words, DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(elapsed_when_finished=True)]
    if not style.ascii:
        columns.insert(1, BarColumn(bar_width=None))
    bar = Progress(*columns, console=console, transient=True, refresh_per_second=5)
    task = bar.add_task("reading logs", total=None)

    def tell(done: int, total: int) -> None:
        bar.start()  # not before there is something to tell: workers start faster while there is no thread that draws
        ended = 0 < total <= done
        bar.update(task, completed=done, total=total or None, description="judging" if ended else "reading logs")

    try:
        yield tell
    finally:
        bar.stop()


@contextmanager
def working(printing: Printing) -> Iterator[None]:
    """A spinner with what is being read, n of N files and their bytes, and the seconds that have passed."""
    if printing.quiet or not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console  # noqa: PLC0415 - only for someone who watches
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    from topodiag.app.case.opening import watched  # noqa: PLC0415

    style = style_for(sys.stderr, color=printing.color, ascii_only=printing.ascii_only)
    console = Console(stderr=True, no_color=not style.color, highlight=False, markup=False, emoji=False)
    spin = SpinnerColumn("line" if style.ascii else "dots")
    with Progress(spin, TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("finding evidence", total=None)
        with watched(lambda watch: bar.update(task, description=reading_words(watch))):
            yield


def reading_words(watch: Watch) -> str:
    """What is done now, as `reading 12 of 40 files, 1.2 of 3.1 GB`."""
    if not watch.total:
        return f"{watch.stage}: {plural(watch.files, 'file')}"
    if watch.files >= watch.total:
        return f"{watch.stage} {plural(watch.total, 'file')}, {spell_bytes(watch.total_size)}"
    sizes = f"{spell_bytes(watch.size)} of {spell_bytes(watch.total_size)}"
    return f"{watch.stage} {watch.files:,} of {plural(watch.total, 'file')}, {sizes}"


@contextmanager
def reading_captures(printing: Printing) -> Iterator[Callable[[int, int], None] | None]:
    """A callback for captures read and captures in all: a bar with the time left."""
    if printing.quiet or not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only for someone who watches
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    style = style_for(sys.stderr, color=printing.color, ascii_only=printing.ascii_only)
    console = Console(stderr=True, no_color=not style.color, highlight=False, markup=False, emoji=False)
    columns = [TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn()]
    if not style.ascii:
        columns.insert(1, BarColumn(bar_width=None))
    bar = Progress(*columns, console=console, transient=True, refresh_per_second=5)
    task = bar.add_task("reading captures", total=None)

    def tell(done: int, total: int) -> None:
        bar.start()  # as for logs: not before there is something to tell
        bar.update(task, completed=done, total=total, description="comparing" if done >= total else "reading captures")

    try:
        yield tell
    finally:
        bar.stop()
