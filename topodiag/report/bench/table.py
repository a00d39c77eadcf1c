"""The terminal report of measured runs: each with its curve and table, or one line each, then the findings.

And that of `topodiag bench --gate`: one line for each file, then the counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from topodiag.model.bench import Gate, GateState
from topodiag.model.result import Result
from topodiag.model.verdict import Verdict
from topodiag.report.bench.run import draw_overview, draw_run, note_run
from topodiag.report.bench.words import folder_of, sign_of, verdict_word
from topodiag.report.findings import draw_findings
from topodiag.report.gaps import draw_gaps, draw_unreadable
from topodiag.report.places import Places
from topodiag.report.text import Page, Part
from topodiag.report.verdict.table import SIGNS, draw_ruled_out
from topodiag.verdict.headline import causes_of
from topodiag.words.units import in_gbs, plural, spell_bytes, spell_gbs

RUNS_DRAWN = 3
"""Runs drawn in full; of more there is one line each (`-v` draws all)."""
LOW = "BEN001"
"""The check of a low run: what it finds stands at the run."""
NOTES_SHOWN = 4
KNOWN_FROM = ": known from "
"""In the notes on how a collective was told, which the lines need not repeat."""
DETAILED = 2
"""Of many runs, as many that are not normal are drawn in full below the lines."""
PATH_WIDTH = 48
"""Columns that paths are lined up in; a longer one is printed whole."""
_SIGNS = {GateState.PASS: ("✔", "ok"), GateState.FAIL: ("✖", "error"), GateState.UNKNOWN: ("?", "unknown")}


def draw_bench(page: Page, result: Result, *, explain: bool = False) -> None:
    """What a person reads of benchmarks."""
    draw_unreadable(page, result)
    if len(result.benchmarks) <= RUNS_DRAWN or page.style.verbose:
        for benchmark in result.benchmarks:
            page.blank()
            draw_run(page, result, benchmark, explain=explain)
            note_run(page, result, benchmark)
    else:
        _draw_many(page, result, explain=explain)
    verdict = result.verdict or Verdict()
    if not any(causes_of(run, result)[:1] == verdict.causes[:1] for run in result.benchmarks):
        sign, word, hue = SIGNS[verdict.state]
        page.blank()
        page.add(page.text((f"{sign} {word}", hue), "  "), (verdict.headline, "strong"))
    findings = [finding for finding in result.findings if page.style.verbose or finding.id != LOW]
    draw_findings(page, findings, several_nodes=True, places=Places(result))
    if not page.style.quiet:
        rest = Page(page.style)
        draw_ruled_out(rest, verdict)
        draw_gaps(rest, result)
        page.add_rest(rest)
    page.repeat_answers()


def _draw_many(page: Page, result: Result, *, explain: bool) -> None:
    """A line for each run, and a few in full."""
    runs = result.benchmarks
    counts = Counter(verdict_word(benchmark) for benchmark in runs)
    hues = {verdict_word(run): sign_of(run) for run in sorted(runs, key=lambda run: run.severe)}
    words: list[Part] = [
        (f"{counts[verdict]} {verdict}", hues[verdict][1])
        for verdict in ("failed", "impossible", "low", "normal", "unknown")
        if counts[verdict]
    ]
    page.add_items(page.text((plural(len(runs), "run"), "strong"), "  "), words)
    worst = next((state for state in ("failed", "impossible", "low", "unknown") if counts[state]), "normal")
    sign, hue = hues.get(worst, ("?", "unknown"))
    page.note_answer(page.join(words, ", "), sign=sign, hue=hue, name=plural(len(runs), "run"))
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
    benchmarks = [benchmark for benchmark in runs if verdict_word(benchmark) in {"failed", "impossible", "low"}]
    for benchmark in benchmarks[:DETAILED]:
        page.blank()
        draw_run(page, result, benchmark, explain=explain, plot=False)
    page.blank()
    page.add("  ", ("every run in full: -v", "dim"))


def draw_gate(page: Page, gates: Sequence[Gate]) -> None:
    """Each file with what it reached and the bar, the reason below what did not pass."""
    wide = max((len(gate.path) for gate in gates), default=0)
    for gate in gates:
        sign, hue = _SIGNS[gate.state]
        page.add(
            page.text((sign, hue), " ", (gate.state.value.ljust(7), hue), "  "),
            page.text((gate.path.ljust(min(wide, PATH_WIDTH)), "strong"), f"  {_numbers(gate)}"),
        )
        if gate.state is not GateState.PASS and gate.why:
            page.add("           ", (gate.why, "dim"))
    page.blank()
    counts = Counter(gate.state for gate in gates)
    words = ", ".join(f"{counts[state]} {state.value}" for state in GateState if counts[state])
    worst = next((state for state in (GateState.FAIL, GateState.UNKNOWN) if counts[state]), GateState.PASS)
    sign, hue = _SIGNS[worst]
    page.note_answer((words, hue), sign=sign, hue=hue, name=plural(len(gates), "file"))


def _numbers(gate: Gate) -> str:
    """`87.5 GB/s at 8 GiB, bar 384.3`, as far as it is known."""
    if gate.gbs is None or gate.size is None:
        return "no bandwidth"
    bar = f"bar {spell_gbs(gate.bar_gbs)}" if gate.bar_gbs is not None else "no bar"
    return f"{gate.collective} {in_gbs(gate.gbs)} at {spell_bytes(gate.size)}, {bar}".strip()
