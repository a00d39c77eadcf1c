"""The terminal report of measured runs: each with its curve and table, or one line each, then the findings."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from topodiag.model.result import Result
from topodiag.report.answer import note_answer, repeat_answers
from topodiag.report.bench.run import draw_overview, draw_run, note_run
from topodiag.report.bench.words import folder_of, sign_of, verdict_word
from topodiag.report.drawn import DrawnReport
from topodiag.report.findings import draw_findings
from topodiag.report.gaps import draw_gaps, draw_unreadable
from topodiag.report.text import Page, Part
from topodiag.words.fold import plural

RUNS_DRAWN = 3
"""Runs drawn in full; of more there is one line each (`-v` draws all)."""
NOTES_SHOWN = 4
KNOWN_FROM = ": known from "
"""In the notes on how a collective was told, which the lines need not repeat."""
LOW = "BEN001"
"""The check whose steps are the causes that stand above it, with what confirms them."""
DETAILED = 2
"""Of many runs, as many that are not normal are drawn in full below the lines."""


class BenchTable(DrawnReport):
    """What a person reads of benchmarks."""

    def __init__(self, *, explain: bool = False) -> None:
        self.explain = explain

    def draw(self, page: Page, result: Result) -> None:
        draw_unreadable(page, result)
        runs = result.benchmarks
        if len(runs) <= RUNS_DRAWN or page.style.verbose:
            for benchmark in runs:
                page.blank()
                draw_run(page, benchmark, explain=self.explain)
                note_run(page, benchmark)
        else:
            self._many(page, result)
        drawn = any(benchmark.hypotheses for benchmark in runs) and not page.style.verbose
        findings = [replace(each, fix=()) if drawn and each.id == LOW else each for each in result.findings]
        draw_findings(page, findings, several_nodes=True)
        if not page.style.quiet:
            draw_gaps(page, result)
        repeat_answers(page)

    def _many(self, page: Page, result: Result) -> None:
        runs = result.benchmarks
        counts = Counter(verdict_word(benchmark) for benchmark in runs)
        hues = {verdict_word(benchmark): sign_of(benchmark) for benchmark in sorted(runs, key=lambda each: each.severe)}
        words: list[Part] = [
            (f"{counts[verdict]} {verdict}", hues[verdict][1])
            for verdict in ("failed", "impossible", "low", "normal", "unknown")
            if counts[verdict]
        ]
        page.add_items(page.text((plural(len(runs), "run"), "strong"), "  "), words)
        worst = next((each for each in ("failed", "impossible", "low", "unknown") if counts[each]), "normal")
        sign, hue = hues.get(worst, ("?", "unknown"))
        note_answer(page, page.join(words, ", "), sign=sign, hue=hue, name=plural(len(runs), "run"))
        folder = folder_of([benchmark.run for benchmark in runs])
        if folder:
            page.add("  ", (f"of {folder}", "dim"))
        page.blank()
        draw_overview(page, runs)
        notes = Counter(note for benchmark in runs for note in benchmark.run.notes if KNOWN_FROM not in note)
        for note, count in notes.most_common(NOTES_SHOWN):
            page.add("  ", ("note: ", "doubtful"), f"{plural(count, 'run')}: {note}")
        if page.style.quiet:
            return
        odd = [benchmark for benchmark in runs if verdict_word(benchmark) in {"failed", "impossible", "low"}]
        for benchmark in odd[:DETAILED]:
            page.blank()
            draw_run(page, benchmark, explain=self.explain, plot=False)
        page.blank()
        page.add("  ", ("every run in full: -v", "dim"))
