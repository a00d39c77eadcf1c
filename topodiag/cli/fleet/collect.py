"""`topodiag fleet collect`: the collector on many nodes, their bundles in one folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from topodiag.cli.errors import CLEAN, FOUND, Outcome
from topodiag.cli.options import Command, Printing, format_option, options, page_options, value_options

if TYPE_CHECKING:
    from topodiag.model.collect import NodeAnswer

WHOLE_S = 300.0
_OPTIONS = options(
    "nodelist", "to", "via", "fanout", "deadline", "within", "sample", "user", "ssh_options", "image", "namespace",
    "again", of="fleet collect",
)  # fmt: skip


@click.command(cls=Command)
@value_options("asked", dict, _OPTIONS, ("fanout", "deadline", "sample", "user", "ssh_options", "image", "namespace"))
@format_option()
@page_options
@click.pass_obj
def collect(  # noqa: PLR0917 - one parameter per option
    reached: Outcome,
    nodelist: tuple[str, ...],
    to: str,
    via: str,
    asked: dict[str, Any],
    within: float | None,
    again: bool,
    printing: Printing,
) -> None:
    """Run the collector on many nodes, and bring one bundle of each into a folder.

    A node needs Python 3.6. Nothing is installed there, no disk is written, and root is not needed. Each bundle is
    saved when it arrives; the same command, run again, asks only the nodes without a good bundle. A node that was not
    reached is asked once more. A node that hung is not asked again: its bundle says what it waited for.

    Exit code 0: every node answered. 1: at least one node did not answer. Whether the nodes are healthy, `topodiag
    fleet compare` says.

    \b
    Examples
      topodiag fleet collect --nodelist gpu[001-200] --to monday/
      salloc -N 64 topodiag fleet collect --to monday/
      topodiag fleet compare monday/
    """
    from topodiag.app.collect import collect_fleet, request_of  # noqa: PLC0415 - heavy from here on
    from topodiag.cli.output import opened, write_drawing  # noqa: PLC0415
    from topodiag.fleet.collect.share import command as share_command  # noqa: PLC0415
    from topodiag.report.fleet.collected import draw_collection, write_collection  # noqa: PLC0415

    request = request_of(**asked)
    whole = WHOLE_S if within is None else within
    if via == "share":
        click.echo(f"run on each node: {share_command(to, request)}", err=True)
    with _progress(printing) as tell:
        done = collect_fleet(nodelist, to, via, request, whole_s=whole, again=again, tell=tell)
    reached.code = CLEAN if done.complete else FOUND
    if printing.format_ == "json":
        with opened(printing.output) as stream:
            write_collection(done, stream)
        return
    write_drawing(lambda page: draw_collection(page, done), printing)


@contextmanager
def _progress(printing: Printing) -> Iterator[Callable[[NodeAnswer | None, int, int], None] | None]:
    """A bar of the nodes that have answered, on standard error, while a terminal looks on; else silence."""
    from topodiag.cli.progress import bar  # noqa: PLC0415 - heavy

    counts: dict[str, int] = {}
    with bar(printing, "collecting", "MofNCompleteColumn", "TimeElapsedColumn") as shown:

        def tell(answer: NodeAnswer | None, done: int, total: int) -> None:
            if answer is not None and answer.state != "answered":
                counts[answer.state.value] = counts.get(answer.state.value, 0) + 1
            words = ", ".join(["collecting", *(f"{count} {state}" for state, count in counts.items())])
            if shown is not None:
                shown.show(done, total, words)

        yield None if shown is None else tell
