"""The terminal report of measured runs: each with its head, verdict, curve, table, fit, and what may be behind a
shortfall, or one line each, then the findings. And that of `topodiag bench --gate`: one line for each file, then the
counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from math import fsum

from topodiag.model.bench import Benchmark, BenchRow, BenchRun, Gate, GateState, Regime
from topodiag.model.finding import Confidence
from topodiag.model.maker import run_maker
from topodiag.model.result import Result
from topodiag.model.verdict import Verdict
from topodiag.report.bench.plot import draw_curves
from topodiag.report.bench.words import (
    collective_words,
    expected_at,
    folder_of,
    gpus_words,
    place_words,
    ranks_words,
    sign_of,
    signed,
    verdict_word,
)
from topodiag.report.findings import draw_findings
from topodiag.report.gaps import draw_gaps, draw_unreadable
from topodiag.report.grid import Columns, Field, draw_listed, draw_table, draw_terms, figure
from topodiag.report.places import Places
from topodiag.report.text import BELOW, Page, Part
from topodiag.report.verdict.cause import draw_answer
from topodiag.report.verdict.table import SIGNS, draw_ruled_out
from topodiag.verdict.headline import cause_words, causes_of
from topodiag.words.dialect import AMD, NVIDIA, Maker
from topodiag.words.units import fold_hosts, in_gbs, percent, plural, spell_bytes, spell_gbs, spell_us

ROWS_SHOWN = 40
"""Rows of a table; a sweep over types and operations has thousands (`-v` shows all)."""
HYPOTHESES_SHOWN = 4
LOW_SHARE = 0.7
"""Share of the expectation below which a row of a low run is marked, at sizes where bandwidth counts."""


def draw_run(page: Page, result: Result, benchmark: Benchmark, *, explain: bool = False, plot: bool = True) -> None:
    """All of one run of the result."""
    _draw_head(page, result, benchmark)
    if page.style.quiet:
        return
    for error in benchmark.run.errors:
        page.add(page.text("  ", ("✖ ", "error")), error)
    if page.style.verbose:
        if plot:
            draw_curves(page, [benchmark])
        _draw_rows(page, benchmark)
        _draw_fit(page, benchmark)
    _draw_causes(page, result, benchmark)
    if explain or page.style.verbose:
        terms = benchmark.expected.terms if benchmark.expected is not None else ()
        draw_terms(page, terms, "how the expectation follows")
    for note in benchmark.run.notes:
        page.add("  ", ("note: ", "doubtful"), note)


def _draw_head(page: Page, result: Result, benchmark: Benchmark) -> None:
    """Verdict, the number that it is about, what to do, and what ran where."""
    run = benchmark.run
    folder = folder_of([other.run for other in result.benchmarks])
    sign, hue = sign_of(benchmark)
    place = f"  {run.placement}" if run.placement else ""
    page.add(page.text((sign, hue), " ", (collective_words(run), "strong"), "  "), ranks_words(run), (place, "name"))
    _draw_verdict(page, benchmark)
    page.entry("do", (action_of(result, benchmark), "strong"), hue="ok")
    parts: list[Part] = [(place_words(run, folder), "close"), gpus_words(run), *_versions_words(run)]
    if len(run.hosts) > 1:
        parts.append(fold_hosts([host for host in run.hosts if host]))
    page.entry("evidence", page.join([part for part in (*parts, *_settings_words(run)) if part], (" · ", "dim")))
    if (expected := benchmark.expected) is not None:
        note = "" if expected.confidence is Confidence.HIGH else f"  [{expected.confidence} confidence]"
        words = f"expected for {expected.machine}, whose links carry up to {in_gbs(expected.limit_gbs)}"
        page.entry("", words, (note, "doubtful"))


def action_of(result: Result, benchmark: Benchmark) -> str:
    """What to do first: against the verdict's first cause of what a run lacks; of an unknown run what lets it be
    judged; "" for any other."""
    return next((step for cause in causes_of(benchmark, result)[:1] for step in cause.finding.fix), benchmark.action)


def note_run(page: Page, result: Result, benchmark: Benchmark) -> None:
    """The verdict on a run, for the report's last line."""
    sign, hue = sign_of(benchmark)
    top = benchmark.run.top
    reached = f"  {in_gbs(top[1])} bus bandwidth at {spell_bytes(top[0])}" if top is not None else ""
    page.note_answer(
        (verdict_word(benchmark), hue), reached,
        sign=sign, hue=hue, name=collective_words(benchmark.run), action=action_of(result, benchmark),
    )  # fmt: skip


def _draw_verdict(page: Page, benchmark: Benchmark) -> None:
    top = benchmark.run.top
    words = page.text((verdict_word(benchmark), sign_of(benchmark)[1]), "  ")
    if verdict_word(benchmark) == "failed" and benchmark.gate is not None:
        page.add("  ", words, (benchmark.gate.why, "strong"))
        words = page.text((benchmark.verdict, "dim"), "  ")
    if benchmark.verdict == "unknown" and top is not None:
        at = f" bus bandwidth at {spell_bytes(top[0])}"
        page.add("  ", words, page.text((in_gbs(top[1]), "strong"), at))
        if benchmark.why:
            page.add("  ", (benchmark.why.removesuffix(f": {benchmark.action}"), "doubtful"))
    elif benchmark.verdict == "unknown" and benchmark.run.average_gbs is not None:
        average = page.text((in_gbs(benchmark.run.average_gbs), "strong"))
        page.add("  ", words, average, " on average over all sizes, small ones too: it says little")
    else:
        at = f"at {spell_bytes(top[0])} " if top is not None and benchmark.verdict in {"normal", "low"} else ""
        page.add("  ", words, at, (benchmark.why, "strong"))


def _draw_rows(page: Page, benchmark: Benchmark) -> None:
    rows = benchmark.run.rows
    if not rows:
        return
    kinds = len({(row.dtype, row.redop, row.root) for row in rows}) > 1
    columns: Columns[BenchRow] = {
        Field("size", right=True): lambda row: spell_bytes(row.size),
        Field("type"): lambda row: " ".join(
            word for word in (row.dtype, row.redop) if kinds and word not in {"", "none"}
        ),
        Field("time", right=True): lambda row: figure(row.best.time_us, spell_us),
        Field("algbw", right=True, drop=2): lambda row: _gbs(row.best.algbw_gbs),
        Field("busbw", right=True): lambda row: (
            _gbs(row.best.busbw_gbs),
            "warning" if _is_low(benchmark, row) else "strong",
        ),
        Field("expected", right=True): lambda row: _gbs(expected_at(benchmark, row.size)),
        Field("of it", right=True, drop=3): lambda row: (
            percent(share) if (share := _share_of(benchmark, row)) is not None else "",
            "warning" if _is_low(benchmark, row) else "dim",
        ),
        Field("in place", right=True, drop=1): lambda row: _gbs(row.in_place.busbw_gbs),
        Field("wrong", right=True): lambda row: (f"{wrong:.0f}", "error") if (wrong := _wrong_of(row)) else "",
        Field(""): lambda row: ("cut off", "doubtful") if row.cut else "",
    }
    page.blank()
    draw_listed(page, columns, rows, ROWS_SHOWN, "row")


def _is_low(benchmark: Benchmark, row: BenchRow) -> bool:
    """Whether a row of a low run is far below its expectation, at a size where bandwidth counts."""
    expected, share = expected_at(benchmark, row.size), _share_of(benchmark, row)
    if benchmark.verdict != "low" or benchmark.expected is None or expected is None or share is None:
        return False
    return expected >= benchmark.expected.busbw_gbs / 2 and share < LOW_SHARE


def _gbs(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 100 else f"{value:.1f}"


def _draw_fit(page: Page, benchmark: Benchmark) -> None:
    fit = benchmark.fit
    if not fit.regimes:
        return
    page.heading("fit", ("  time = alpha + size / algbw, 95 % intervals", "dim"), lead="  ")
    columns: Columns[Regime] = {
        Field("sizes"): lambda regime: f"{spell_bytes(regime.low)} - {spell_bytes(regime.high)}",
        Field("time"): lambda regime: (_regime_words(regime), "strong"),
        Field("alpha", drop=2): lambda regime: _range_words(*regime.alpha_range, "us"),
        Field("algbw", drop=1): lambda regime: _range_words(*regime.beta_range, "GB/s"),
        Field("rows", right=True, drop=3): lambda regime: str(regime.points),
    }
    draw_table(page, columns, fit.regimes)
    items: list[Part] = []
    if fit.latency_us is not None:
        items.append(f"latency floor {spell_us(fit.latency_us)}")
    if fit.bound_from is not None:
        items.append(f"bandwidth-bound from {spell_bytes(fit.bound_from)}")
    if fit.plateau_gbs is not None:
        items.append(f"plateau {in_gbs(fit.plateau_gbs)} bus bandwidth")
    page.add_items("  ", items)


def _draw_causes(page: Page, result: Result, benchmark: Benchmark) -> None:
    """The verdict's causes of what a run lacks; where only the run shows a fault, those that would explain its numbers,
    likeliest first, then what it is not and what says so."""
    verbose = page.style.verbose
    for cause in causes_of(benchmark, result)[:1]:
        draw_answer(page, cause)
        page.entry(
            "", (f"{cause.finding.id}  ", str(cause.finding.severity)), (cause_words(cause.finding), "strong"), most=2
        )
    for number, hypothesis in enumerate(page.listed(benchmark.hypotheses, HYPOTHESES_SHOWN, "cause", indent=BELOW)):
        likely = f"{percent(hypothesis.likelihood)} likely, predicts {in_gbs(hypothesis.predicted_gbs)}: "
        check = f"{hypothesis.check}  " if hypothesis.check else ""
        page.entry("" if number else "may be", likely, (check, "close"), (hypothesis.cause, "strong"), most=1)
        for words in (*hypothesis.evidence, *(f"check with: {word}" for word in hypothesis.confirm)) if verbose else ():
            page.entry("", "  ", (words, "dim"))
    page.entry("ruled out", "; ".join(benchmark.ruled_out), most=2)


def draw_overview(page: Page, benchmarks: Sequence[Benchmark]) -> None:
    """One line per run, where there are too many to draw each."""
    folder = folder_of([benchmark.run for benchmark in benchmarks])
    columns: Columns[Benchmark] = {
        Field("verdict"): signed,
        Field("collective"): lambda one: (collective_words(one.run), "strong"),
        Field("ranks", right=True): lambda one: figure(one.run.nranks, str),
        Field("hosts", right=True, drop=3): lambda one: (
            str(len(one.run.hosts)) if one.run.hosts and len(one.run.devices) == one.run.nranks else ""
        ),
        Field("sizes", drop=4): lambda one: _sizes_words(one.run.rows),
        Field("latency", right=True, drop=2): lambda one: figure(one.fit.latency_us, spell_us),
        Field("busbw GB/s", right=True): lambda one: (spell_gbs(one.run.top[1]), "strong") if one.run.top else "",
        Field("expected", right=True): lambda one: spell_gbs(one.expected.busbw_gbs) if one.expected else "",
        Field("of it", right=True, drop=1): _share_words,
        Field("placement", least=8): lambda one: one.run.placement,
        Field("where", least=12): lambda one: (place_words(one.run, folder), "dim"),
    }
    draw_table(page, columns, benchmarks, indent=0)


def _versions_words(run: BenchRun) -> list[str]:
    dialect = AMD if run_maker(run) is Maker.AMD else NVIDIA
    lines = [f"{dialect.library} {run.nccl}"] if run.nccl else []
    return lines + ([f"{dialect.say('nccl-tests')} {run.version}"] if run.version else [])


def _settings_words(run: BenchRun) -> list[str]:
    """What of the parameters changes what the numbers mean, then NCCL's settings."""
    pairs = [("graph", "0"), ("agg iters", "1"), ("unalign", "0"), ("blocking", "0")]
    lines = [
        f"{name} {run.parameters[name]}"
        for name, usual in pairs
        if name in run.parameters and run.parameters[name] not in {usual, "false"}
    ]
    if run.parameters.get("validation") == "0":
        lines.append("results not checked (-c 0)")
    return lines + [f"{name}={value}" for name, value in sorted(run.env.items()) if name.startswith("NCCL_")]


def _wrong_of(row: BenchRow) -> float | None:
    """Wrong elements of both blocks; None where neither was checked."""
    counts = [timing.wrong for timing in (row.out_of_place, row.in_place) if timing.wrong is not None]
    return fsum(counts) if counts else None


def _regime_words(regime: Regime) -> str:
    """`18.2 us + size / 98.3 GB/s`, or the time alone where it does not grow."""
    if not math.isfinite(regime.beta_gbs):
        return spell_us(regime.alpha_us)
    rate = f"size / {in_gbs(regime.beta_gbs)}"
    return rate if regime.alpha_us <= 0 else f"{spell_us(regime.alpha_us)} + {rate}"


def _range_words(low: float, high: float, unit: str) -> str:
    """`95 to 102 GB/s`, or how little is known."""
    if not math.isfinite(high):
        return f"from {spell_gbs(low)} {unit}" if math.isfinite(low) and low > 0 else "not known"
    return f"{spell_gbs(low)} to {spell_gbs(high)} {unit}"


def _share_words(benchmark: Benchmark) -> str:
    """The part of the expectation that the best row reached."""
    top, expected = benchmark.run.top, benchmark.expected
    return percent(top[1] / expected.busbw_gbs) if top and expected and expected.busbw_gbs else ""


def _share_of(benchmark: Benchmark, row: BenchRow) -> float | None:
    """The part of the expectation that a row reached: by times, since small bandwidths are printed as 0.00."""
    expected, time = benchmark.expected, row.best.time_us
    if expected is None or not time or row.size not in expected.time_us:
        at, bus = expected_at(benchmark, row.size), row.best.busbw_gbs
        return bus / at if at and bus is not None else None
    return expected.time_us[row.size] / time


def _sizes_words(rows: Sequence[BenchRow]) -> str:
    sizes = [row.size for row in rows if row.size > 0]
    return f"{spell_bytes(min(sizes))} to {spell_bytes(max(sizes))}" if sizes else "no rows"


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
