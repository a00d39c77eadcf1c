"""`topodiag scan`: diagnose this node or captured evidence, print the report, exit with the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from topodiag.cli.errors import Outcome
from topodiag.cli.options import Command, Printing, format_option, options, page_options, value_options
from topodiag.cli.params import EVIDENCE
from topodiag.report.registry import names

if TYPE_CHECKING:
    from topodiag.model.result import Result
    from topodiag.report.text import Page


_OPTIONS = options("since", "save", "redact", "sample", "deadline", of="scan")


@click.command(cls=Command)
@click.argument("sources", metavar="[PATH]...", nargs=-1, type=EVIDENCE)
@value_options("live", dict, _OPTIONS, ("save", "sample", "deadline"))
@format_option(names())
@options("html", "fail_on", page_options)
@click.pass_obj
def scan(
    reached: Outcome,
    sources: tuple[str, ...],
    since: str | None,
    live: dict[str, Any],
    printing: Printing,
) -> None:
    """Check the GPUs, links and NICs of this node, or of captured nodes.

    Without PATH this node is probed: nothing is changed, root is not needed, and the report says what root would add.
    PATH is a bundle, a folder or an archive of one or many nodes, a file of tool output, a topology file, a pattern,
    fixture:NAME, or - for standard input. For a file that is not about a node, the report names the command that reads
    it.
    """
    from topodiag.cli.output import printable, write_report  # noqa: PLC0415 - heavy from here on

    _refuse_live_options(sources, live)
    if sources:
        from topodiag.app.scan import scan as judge_nodes  # noqa: PLC0415
        from topodiag.cli.progress import working  # noqa: PLC0415

        with working(printing):
            result = printable(judge_nodes(sources, since=since), redact=printing.redact)
    else:
        result = _live(since, live, printing)
    reached.code = _verdict(result, printing)
    write_report(printing, "scan", result, _draw)


def _draw(page: Page, result: Result) -> None:
    from topodiag.report.table import draw_result  # noqa: PLC0415 - only where it is asked for

    draw_result(page, result)


def _refuse_live_options(sources: tuple[str, ...], given: Mapping[str, object]) -> None:
    names = [f"--{name}" for name, value in given.items() if value not in (None, False)]
    if sources and names:
        raise click.UsageError(f"{', '.join(names)} only makes sense for a live scan, without PATH.")


def _live(since: str | None, given: Mapping[str, Any], printing: Printing) -> Result:
    from topodiag.app.case.live import Options  # noqa: PLC0415
    from topodiag.app.scan import live  # noqa: PLC0415
    from topodiag.cli.progress import spinner  # noqa: PLC0415

    times = {f"{name}_s": given[name] for name in ("deadline", "sample") if given[name] is not None}
    options = Options(save=given["save"], redact=printing.redact, **times)
    with spinner(printing) as tell:
        return live(options=options, on_progress=tell, since=since)


def _verdict(result: Result, printing: Printing) -> int:
    """The exit code that the findings call for."""
    if printing.format_ == "nagios":
        from topodiag.report.formats.nagios import state_of  # noqa: PLC0415

        return int(state_of(result))
    from topodiag.cli.output import verdict  # noqa: PLC0415

    return verdict(result, printing.fail_on)
