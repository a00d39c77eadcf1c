"""`--errors`: what went wrong, in the order of time; the first error is marked, what follows from others is folded.
`--unread`: what was not understood."""

from __future__ import annotations

from topodiag.checks.shared.job.first_error import first_error
from topodiag.model.job import Event, Job
from topodiag.model.result import Result
from topodiag.report.gaps import unread_count
from topodiag.report.job.words import clock, spell_hosts, spell_ranks
from topodiag.report.text import Page
from topodiag.words.units import grouped, plural

EVENTS_SHOWN = 20
SHAPES_SHOWN = 40


def in_order(job: Job) -> list[Event]:
    """By time where there is one; those without keep their order, after the others."""
    return sorted(job.events, key=lambda event: (event.ts is None, event.ts or 0.0))


def draw_errors(page: Page, job: Job) -> None:
    events = in_order(job)
    if not events:
        page.add("  ", ("no warning and no error in the logs", "ok"))
        return
    first = first_error(job)
    own = events if page.style.verbose else [event for event in events if not event.secondary or event is first]
    shown = page.some(own, EVENTS_SHOWN)
    if any(event is first for event in own[len(shown) :]):
        shown = [*shown[:-1], *(event for event in own if event is first)]
    for event in shown:
        _draw(page, event, event is first)
    page.add_more(len(own) - len(shown), "error", indent="    ")
    if not page.style.verbose:
        _draw_cascade(page, [event for event in events if event.secondary and event is not first])
    if all(event.ts is None for event in events):
        page.add("  ", ("no line has a time: NCCL_DEBUG_TIMESTAMP_LEVELS=ALL (NCCL 2.26 and later) adds it", "dim"))


def _draw(page: Page, event: Event, first: bool) -> None:
    when = clock(event.ts, date=first)
    who = event.host + (f" rank {event.rank}" if event.rank >= 0 else f" pid {event.pid}" if event.pid >= 0 else "")
    head = page.text(("✖ " if first else "  ", "error"), (f"{when} " if when else "", "dim"), (who, "name"), "  ")
    times = f" ×{event.count}" if event.count > 1 else ""
    kind = page.text((event.kind, "error" if first else "warning"), "  ")
    end = page.text((times, "strong"), ("  first error" if first else "", "error"))
    place = f"  {event.origin}" if event.origin is not None else ""
    page.add(page.text("  ", head), kind, event.text, end, (place, "dim"))


def _draw_cascade(page: Page, followed: list[Event]) -> None:
    by_kind = grouped((event.kind, event) for event in followed)
    if not followed:
        return
    total = sum(event.count for event in followed)
    page.add("  ", (f"{total} more follow from others:", "strong"), (" (-v shows all)", "dim"))
    for kind, events in sorted(by_kind.items(), key=lambda item: -len(item[1])):
        ranks = [event.rank for event in events if event.rank >= 0]
        hosts = spell_hosts([event.host for event in events if event.host])
        places = [f"on {hosts}"] if hosts else []
        places += [f"ranks {spell_ranks(ranks)}"] if ranks else []
        words = ", ".join(places)
        times = [event.ts for event in events if event.ts is not None]
        span = f", {clock(min(times))} to {clock(max(times))}" if times else ""
        count = sum(event.count for event in events)
        page.add(page.text("    ", (kind, "warning"), f" ×{count} "), words, (span, "dim"))


def draw_unread(page: Page, result: Result) -> None:
    """Shapes of records that nothing understood, the most frequent first, each with its first place."""
    page.blank()
    count = unread_count(result)
    if not count:
        page.add("", ("every record was understood", "ok"))
        return
    page.add("", (f"{plural(count, 'record')} not understood", "strong"))
    for line in page.listed(result.unread, SHAPES_SHOWN, "shape"):
        page.add("  ", line.why)
        page.add("      ", (line.place, "close"), f"  {line.text}" if line.text else "")
