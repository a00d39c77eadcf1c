"""The rings of each job's communicators, equal channels on one line, as `topodiag logs --rings` draws them."""

from __future__ import annotations

from topodiag.draw.rings import draw_rings as svg_of_rings
from topodiag.report.html.interface import Section, Sheet, drawings_of
from topodiag.report.interface import Style
from topodiag.report.job.rings import draw_rings
from topodiag.report.text import Page

JOBS_SHOWN = 4
WIDE = 120


def section(sheet: Sheet) -> Section | None:
    """None where no ring was logged."""
    jobs = [job for job in sheet.result.jobs if any(comm.rings for comm in job.communicators)][:JOBS_SHOWN]
    if not jobs:
        return None
    pictures = [(f"Rings of {job.name or 'the job'}", svg_of_rings(job, prefix=f"rings{number}"))
                for number, job in enumerate(jobs)]  # fmt: skip
    pages = [(job.name or "job", Page(Style(width=WIDE))) for job in jobs]
    for job, (_, page) in zip(jobs, pages, strict=True):
        draw_rings(page, job)
    return Section("rings", "Rings", {"jobs": pages, "drawings": drawings_of(*pictures)})
