"""Whether a measured bandwidth is normal, low or impossible, against an expectation.

How far below is broken is decided here alone: the finding's severity, the sign on the page and the gate follow it.
"""

from __future__ import annotations

from topodiag.lazy import dataclass
from topodiag.model.bench import BenchRun, Expectation
from topodiag.model.finding import Confidence
from topodiag.words.units import in_gbs, percent, plural, spell_gbs

NORMAL, LOW, IMPOSSIBLE, UNKNOWN = "normal", "low", "impossible", "unknown"

OVER = 1.03
"""Beyond the physical limit by more than clocks and rounding explain."""

SEVERE = 0.5
"""Share of what is expected (of the least that is normal, where the machine is a guess) below which a run is broken."""

BULK_SHARE = 0.5
"""A size at which less than this share of the peak is expected is bound by latency: it says nothing of bandwidth."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`measured_gbs` at `size` bytes against `expected_gbs` there; `ratio` of the two. `why` in one sentence."""

    word: str
    why: str
    size: int = 0
    measured_gbs: float | None = None
    expected_gbs: float | None = None
    severe: bool = False

    @property
    def ratio(self) -> float | None:
        if not self.measured_gbs or not self.expected_gbs:
            return None
        return self.measured_gbs / self.expected_gbs


def is_severe(verdict: Verdict, *, shown: bool) -> bool:
    """Whether something is broken: far below, also of a machine that is guessed where the evidence shows a fault that
    costs it."""
    return verdict.severe or (verdict.word == LOW and shown and (verdict.ratio or 1.0) < SEVERE)


def peak_over(run: BenchRun, expectation: Expectation) -> tuple[float, int] | None:
    """The greatest bandwidth of a run, GB/s, with its size, where it is more than the links can carry."""
    peak = max((((row.busbw_gbs or 0.0), row.size) for row in run.rows), default=(0.0, 0))
    return peak if peak[0] > expectation.limit_gbs * OVER else None


def verdict_of(run: BenchRun, expectation: Expectation | None, why_none: str = "") -> Verdict:
    """The verdict on the greatest size; `impossible` for a bandwidth at any size that the wires cannot carry."""
    top = run.top
    if run.is_foreign:
        return Verdict(
            UNKNOWN, f"not judged: {plural(len(run.rows), 'size')} of an MPI benchmark, without an expectation"
        )
    if top is None:
        return Verdict(UNKNOWN, "no row has a bandwidth")
    size, gbs = top
    if run.nranks == 1:
        return Verdict(UNKNOWN, "one rank: nothing was communicated", size, gbs)
    if expectation is None:
        return Verdict(UNKNOWN, why_none or "nothing is known of the machine", size, gbs)
    if (over := peak_over(run, expectation)) is not None:
        limit = in_gbs(expectation.limit_gbs)
        why = f"{in_gbs(over[0])} is more than the links of {expectation.machine} carry ({limit})"
        return Verdict(IMPOSSIBLE, why, over[1], over[0], expectation.busbw_gbs)
    at = expectation.busbw.get(size, expectation.busbw_gbs)
    if at < expectation.busbw_gbs * BULK_SHARE or (size not in expectation.busbw and size < _LEAST_BULK):
        return Verdict(UNKNOWN, "the greatest size is bound by latency: measure larger ones", size, gbs, at)
    own = expectation.own_low_gbs if expectation.own_low_gbs is not None else expectation.low_gbs
    share = at / expectation.busbw_gbs
    bar = expectation.normal_gbs * share
    low = expectation.low_gbs * share
    guess = " (the machine is a guess)" if expectation.confidence is Confidence.LOW or low < bar else ""
    of = f"{in_gbs(gbs)} of {spell_gbs(at)} expected"
    if gbs < low:
        limit_word = "low below" if low < bar else "normal from"
        why = f"{of}, {percent(1 - gbs / at)} short; {limit_word} {spell_gbs(low)}{guess}"
        least = low if expectation.confidence is Confidence.LOW else at
        return Verdict(LOW, why, size, gbs, at, gbs < least * SEVERE)
    if gbs < own * share:
        why = (
            f"{spell_gbs(at)} expected: low for {expectation.machine}, normal for {expectation.least_of}; "
            "which machine is it? topodiag bench --system (or --machine, --nics)"
        )
        return Verdict(UNKNOWN, why, size, gbs, at)
    if gbs < bar:
        why = (
            f"{percent(1 - gbs / at)} below the {in_gbs(at)} expected of {expectation.machine}: low, or another"
            " machine (fewer or slower NICs); which machine is it? topodiag bench --system (or --machine, --nics)"
        )
        return Verdict(UNKNOWN, why, size, gbs, at)
    return Verdict(NORMAL, f"{of}, normal from {spell_gbs(bar)}{guess}", size, gbs, at)


_LEAST_BULK = 64 << 20
