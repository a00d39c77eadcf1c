"""What a command is doing, on standard error while a terminal looks on; else silence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from topodiag.cli.terminal import is_terminal, style_for
from topodiag.words.text import clean
from topodiag.words.units import plural, spell_bytes

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from topodiag.app.case.opening import Watch
    from topodiag.cli.options import Printing

Tell = Callable[[str, str, float], None]

SHOWN = 4
"""Names on the line; with so many running, more would only flicker."""


class Bar:
    """A bar that is drawn from the first `show` on: workers start faster while no thread draws."""

    def __init__(self, progress: Progress, words: str) -> None:
        self._progress, self._task = progress, progress.add_task(words, total=None)

    def show(self, done: int, total: int, words: str) -> None:
        """So much is done of what there is in all (0: not known)."""
        self._progress.start()
        self._progress.update(self._task, completed=done, total=total or None, description=words)

    def say(self, line: str) -> None:
        """A line that stays above the bar."""
        self._progress.console.print(line, soft_wrap=True)


def _console(printing: Printing) -> tuple[Console, bool] | None:
    """Standard error and whether it takes ASCII alone; None where nobody watches."""
    if printing.quiet or not is_terminal(sys.stderr):
        return None
    from rich.console import Console  # noqa: PLC0415 - only for someone who watches

    style = style_for(sys.stderr, color=printing.color, ascii_only=printing.ascii_only)
    return Console(stderr=True, no_color=not style.color, highlight=False, markup=False, emoji=False), style.ascii


@contextmanager
def bar(printing: Printing, words: str, *columns: str) -> Iterator[Bar | None]:
    """A bar behind these words, with columns of rich by their names; None when nobody watches."""
    watched = _console(printing)
    if watched is None:
        yield None
        return
    from rich import progress  # noqa: PLC0415 - only for someone who watches

    console, ascii_only = watched
    built: list[Any] = [progress.TextColumn("{task.description}", markup=False)]
    built += [] if ascii_only else [progress.BarColumn()]
    built += [getattr(progress, name)() for name in columns]
    shown = progress.Progress(*built, console=console, transient=True, refresh_per_second=5)
    try:
        yield Bar(shown, words)
    finally:
        shown.stop()


@contextmanager
def reading(printing: Printing, what: str, then: str, *columns: str) -> Iterator[Callable[[int, int], None] | None]:
    """A callback for how much of `what` was read, and how much there is (0: not known). `then` comes last."""
    with bar(printing, f"reading {what}", *columns, "TimeRemainingColumn") as shown:
        if shown is None:
            yield None
        else:
            yield lambda done, total: shown.show(done, total, then if 0 < total <= done else f"reading {what}")


@contextmanager
def working(printing: Printing) -> Iterator[None]:
    """A spinner with what is being read, n of N files and their bytes, and the seconds that have passed."""
    watched = _console(printing)
    if watched is None:
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    from topodiag.app.case.opening import watched as watched_reading  # noqa: PLC0415

    console, ascii_only = watched
    spin = SpinnerColumn("line" if ascii_only else "dots")
    with Progress(
        spin, TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True
    ) as shown:
        task = shown.add_task("finding evidence", total=None)
        with watched_reading(lambda watch: shown.update(task, description=reading_words(watch))):
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
def spinner(printing: Printing) -> Iterator[Tell | None]:
    """A callback for the collector's threads, which shows the names of the running probes; None when nobody watches."""
    watched = _console(printing)
    if watched is None:
        yield None
        return
    from rich.text import Text  # noqa: PLC0415 - only for someone who watches

    console, ascii_only = watched
    lock = Lock()
    running: dict[str, None] = {}
    finished = 0

    def line() -> Text:
        names = [clean(name, ascii_only=ascii_only, limit=40) for name in list(running)[:SHOWN]]
        rest = f" +{len(running) - SHOWN}" if len(running) > SHOWN else ""
        words = f"looking at this node: {finished} done, running {', '.join(names)}{rest}" if names else "judging"
        return Text(words, overflow="crop", no_wrap=True)

    with console.status(Text("looking at this node"), spinner="line" if ascii_only else "dots") as status:

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
