"""The terminal report of jobs: verdict and summary of each, and the views that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TextIO

from topodiag.model.job import Job
from topodiag.model.result import Result
from topodiag.report.findings import draw_findings
from topodiag.report.gaps import draw_gaps, unread_count
from topodiag.report.interface import Report, Style
from topodiag.report.job.errors import draw_errors
from topodiag.report.job.ranks import draw_comms, draw_ranks
from topodiag.report.job.rings import draw_rings
from topodiag.report.job.summary import draw_job_head, draw_summary
from topodiag.report.job.transports import draw_transports
from topodiag.report.node.marks import more
from topodiag.report.page import print_page
from topodiag.report.text import Page
from topodiag.report.words import plural

VIEWS: Mapping[str, tuple[str, Callable[[Page, Job], None]]] = {
    "ranks": ("which rank ran where", draw_ranks),
    "comms": ("communicators", draw_comms),
    "rings": ("rings", draw_rings),
    "transports": ("transports between nodes", draw_transports),
    "errors": ("errors, in order", draw_errors),
}
JOBS_SHOWN = 8
SHAPES_SHOWN = 40


class JobTable(Report):
    """What a person reads of logs. With views, these stand in the place of summary, findings and gaps."""

    name = "table"

    def __init__(self, views: tuple[str, ...] = (), *, unread: bool = False) -> None:
        self.views = views
        self.unread = unread

    def render(self, result: Result, stream: TextIO, style: Style) -> None:
        page = Page(style)
        asked = bool(self.views) or self.unread
        if not result.jobs:
            page.add(page.text(("?", "unknown"), " "), ("no job was found in the logs", "unknown"))
        if asked:
            for job in result.jobs:
                for view in self.views:
                    title, draw = VIEWS[view]
                    page.blank()
                    page.add((job.name or "job", "strong"), (f"  {title}", "dim"))
                    draw(page, job)
            if self.unread:
                draw_unread(page, result)
        else:
            draw_jobs(page, result)
            draw_findings(page, result.findings, several_nodes=True)
            if not style.quiet:
                draw_gaps(page, result)
        print_page(page, stream)


def draw_jobs(page: Page, result: Result) -> None:
    """Head and summary of each job."""
    shown = result.jobs if page.style.verbose else result.jobs[:JOBS_SHOWN]
    for job in shown:
        page.blank()
        draw_job_head(page, result, job)
        if not page.style.quiet:
            draw_summary(page, job)
    if len(result.jobs) > len(shown):
        page.blank()
        page.add("", (more(len(result.jobs) - len(shown), "job"), "dim"))


def draw_unread(page: Page, result: Result) -> None:
    """Shapes of records that nothing understood, the most frequent first, each with its first place."""
    page.blank()
    count = unread_count(result)
    if not count:
        page.add("", ("every record was understood", "ok"))
        return
    page.add("", (f"{plural(count, 'record')} not understood", "strong"))
    shown = result.unread if page.style.verbose else result.unread[:SHAPES_SHOWN]
    for line in shown:
        page.add("  ", line.why)
        place = line.source if line.line is None else f"{line.source}:{line.line}"
        page.add("      ", (place, "close"), f"  {line.text}" if line.text else "")
    if len(result.unread) > len(shown):
        page.add("  ", (more(len(result.unread) - len(shown), "shape"), "dim"))
