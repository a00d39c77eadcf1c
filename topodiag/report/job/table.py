"""The terminal report of jobs: verdict and summary of each, and the views that were asked for."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.model.result import Result
from topodiag.report.findings import draw_findings
from topodiag.report.gaps import draw_gaps, draw_unreadable
from topodiag.report.job.registry import VIEWS, View
from topodiag.report.job.summary import draw_job_head, draw_summary
from topodiag.report.places import Places
from topodiag.report.text import Page, more

JOBS_SHOWN = 8


def draw_logs(page: Page, result: Result, views: Sequence[str] = ()) -> None:
    """What a person reads of logs. With views, these stand in the place of summary, findings and gaps."""
    draw_unreadable(page, result)
    if not result.jobs:
        page.add(page.text(("?", "unknown"), " "), ("no job was found in the logs", "unknown"))
    if views:
        _draw_views(page, result, [VIEWS[name] for name in views])
    else:
        summary, gaps = Page(page.style), Page(page.style)
        draw_jobs(page, result, summary if len(result.jobs) == 1 else page)
        draw_findings(page, result.findings, several_nodes=True, places=Places(result))
        if not page.style.quiet:
            draw_gaps(gaps, result)
            first, last = (gaps, summary) if result.findings else (summary, gaps)
            first.lines += last.lines
            page.add_rest(first)
        page.repeat_answers()


def _draw_views(page: Page, result: Result, views: Sequence[View]) -> None:
    for job in result.jobs:
        for view in views:
            if view.title:
                page.blank()
                page.add((job.name or "job", "strong"), (f"  {view.title}", "dim"))
                view.draw(page, job)
    for view in views:
        if not view.title:
            view.draw(page, result)


def draw_jobs(page: Page, result: Result, summaries: Page) -> None:
    """Head and summary of each job; of one job the summary stands where the screen has room for it."""
    shown = page.some(result.jobs, JOBS_SHOWN)
    for job in shown:
        page.blank()
        draw_job_head(page, result, job)
        if not page.style.quiet:
            draw_summary(summaries, job)
    if len(result.jobs) > len(shown):
        page.blank()
        page.add("", (more(len(result.jobs) - len(shown), "job"), "dim"))
