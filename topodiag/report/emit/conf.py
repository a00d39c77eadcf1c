"""What is said beside an emitted nccl.conf: what is set, corrected and taken out, why, and what no file can do."""

from __future__ import annotations

from topodiag.model.nccl_conf import ConfAdvice
from topodiag.report.text import Page


def draw_conf(page: Page, advice: ConfAdvice, output: str | None) -> None:
    """The account of one file, for standard error."""
    if not advice.follows:
        mark, words = ("▲", "doubtful") if advice.elsewhere else ("✔", "ok"), "nothing follows for nccl.conf"
        page.add(page.text(mark, " ", (advice.subject, "strong"), "  "), words)
    else:
        kept = sum(entry.kept for entry in advice.entries)
        removals = sum(entry.value is None for entry in advice.entries)
        counts = (len(advice.entries) - kept - removals, "set"), (removals, "taken out"), (kept, "kept")
        words = ", ".join(f"{count} {what}" for count, what in counts if count)
        page.add(page.text(("✔", "ok"), " ", (output or "nccl.conf", "strong"), "  "), words)
    for entry in advice.entries:
        if not entry.kept:
            line = f"{entry.name}={entry.value}" if entry.value is not None else f"without {entry.was or entry.name}"
            page.add("  ", (line, "strong"))
            for sentence in entry.why:
                page.add("    ", (sentence, "dim"))
    for sentence in advice.elsewhere:
        page.add("  ", ("not by a file  ", "doubtful"), sentence)
