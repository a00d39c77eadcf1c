"""What a benchmark should reach: NCCL's model of the machine, times what healthy machines of its kind make of it; and
whether a measured bandwidth is normal, low or impossible against that.

With a topology (a node, a file, a log) the expectation is NCCL's own prediction for it; without one, the same model on
the catalogued machine that the system's name or the GPU names and ranks per host stand for, with lower confidence and
with the least of all machines that fit as the bound of what is normal. Where only the NICs of a node are known, and on
AMD's accelerators, whose RCCL decides for itself, it is that of the wires.

A sweep is a hundred runs of one placement. What is reckoned for it depends on nothing that was measured, so that it is
reckoned once. Of the last few kinds alone: what is kept holds the node it was made of.

How far below is broken is decided here alone: the finding's severity, the sign on the page and the gate follow it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from math import log
from typing import Any, Generic, TypeVar, Unpack

from topodiag.expect.calibration import Calibration, Factor, Tolerance, calibration, generation_of
from topodiag.expect.rates import Rates, rates_of
from topodiag.expect.setup import ANY_NETWORK, GivenSetup, NoSetupError, Setup, setup_of
from topodiag.expect.wires import Wires, wire_rates, wires_of
from topodiag.lazy import dataclass
from topodiag.model.bench import BenchDevice, BenchRun, Expectation
from topodiag.model.finding import Confidence
from topodiag.model.node import Node
from topodiag.words.units import in_gbs, percent, plural, spell_gbs


@dataclass(frozen=True, slots=True)
class Expected:
    """An expectation with what it was made of, or why there is none."""

    expectation: Expectation | None = None
    why: str = ""
    action: str = ""
    """What would help, which `why` ends with."""
    setup: Setup | None = None
    rates: Rates | None = None
    factor: Factor | None = None
    wires: Wires | None = None
    """In place of `setup` where only wires are known."""
    unlike: tuple[str, ...] = ()
    """What is to be said of nodes that are not like the others."""


VERSION = "NCCL "

APART = 1.25
"""Times by which versions of NCCL differ from which they are told apart by what was measured."""

DOUBT = 0.35
"""Share below the expectation of a guessed machine from which a run is no longer called normal: one NIC of four fewer,
or the spread of healthy networks, is less than this; half the NICs or half their rate is more."""


def expected(
    run: BenchRun, machine: Node | None = None, *, fitted: Calibration | None = None, **given: Unpack[GivenSetup]
) -> Expected:
    """`expect` with its parts; `fitted` stands in for the shipped calibration. Never raises for a run's content."""
    sizes = tuple(dict.fromkeys(row.size for row in run.rows))
    try:
        setup = shared_setup(run, machine, given)
        rates, setup, versions = _middle(run, setup, sizes)
    except NoSetupError as lacking:
        try:
            wires = wires_of(run, lacking, given)
            rates = wire_rates(wires, run.collective, sizes)
        except NoSetupError as still:
            return Expected(why=str(still), action=still.action)
        return _calibrated(run, wires, rates, (), fitted or calibration())
    others = (*versions, *variants_of(setup, run.collective))
    return _calibrated(run, setup, rates, others, fitted or calibration())


def _calibrated(
    run: BenchRun, setup: Setup | Wires, rates: Rates, others: tuple[tuple[str, Rates], ...], fitted: Calibration
) -> Expected:
    generation = generation_of(setup.sm) if isinstance(setup, Setup) else ""
    factor = fitted.of(generation, rates.transport, run.collective)
    tolerance = fitted.tolerance(rates.transport)
    peak = min(rates.peak * factor.factor, rates.limit)
    below = max(tolerance.below, setup.guessed, rates.below)
    low, limit = peak * (1 - below), rates.limit
    terms = list(rates.terms)
    note = f"{factor.rows} published rows of {len(factor.systems)} systems, {factor.low:.2f} to {factor.high:.2f}"
    terms.insert(
        -1, ("reached by healthy machines", f"x {factor.factor:.3f}", note if factor.rows else "none published")
    )
    terms.append(("normal from", in_gbs(low), f"-{percent(below)}: {_reason(setup, tolerance, rates)}"))
    own, least_of = low, ""
    for name, other in others:
        scale = fitted.of(generation, other.transport, run.collective).factor
        other_low = other.peak * scale * (1 - max(fitted.tolerance(other.transport).below, setup.guessed, other.below))
        limit = max(limit, other.limit)
        if other_low >= low:
            continue
        low = other_low
        terms.append(("normal from", in_gbs(low), f"as {name} would reach, which fits as well"))
        # Another version is no other machine.
        own, least_of = (low, least_of) if name.startswith(VERSION) else (own, name)
    terms += [("assumed", "", note) for note in setup.assumed]
    # A size is expected at its own share of the peak: latency is NCCL's, bandwidth what healthy machines make of it.
    expectation = Expectation(
        machine=setup.machine,
        busbw_gbs=peak,
        low_gbs=low,
        limit_gbs=limit,
        confidence=setup.confidence if factor.rows else min(setup.confidence, Confidence.MEDIUM),
        busbw={size: gbs * factor.factor for size, gbs in rates.busbw.items()},
        time_us={size: time / factor.factor for size, time in rates.time_us.items()},
        latency_us=rates.latency_us if setup.guessed < ANY_NETWORK else None,
        terms=tuple(terms),
        own_low_gbs=own if least_of else None,
        least_of=least_of,
        doubt_gbs=peak * (1 - max(tolerance.below, rates.below, DOUBT)) if setup.guessed > DOUBT else None,
    )
    if isinstance(setup, Wires):
        return Expected(expectation, rates=rates, factor=factor, wires=setup)
    return Expected(expectation, setup=setup, rates=rates, factor=factor)


def _reason(setup: Setup | Wires, tolerance: Tolerance, rates: Rates) -> str:
    if max(setup.guessed, rates.below) <= tolerance.below:
        return tolerance.why
    if setup.guessed <= rates.below:
        return "between racks NCCL's figure only ranks its algorithms"
    return "the machine is a guess" if isinstance(setup, Setup) else "only the links are known"


def _middle(run: BenchRun, setup: Setup, sizes: tuple[int, ...]) -> tuple[Rates, Setup, list[tuple[str, Rates]]]:
    """The rates by NCCL's version, or of the middle one of those that it could be, and the others. Where versions are
    far apart and the run does not say which it had, what it measured says it: of those the nearest is meant."""
    pairs = versions_of(setup, run.collective, sizes)
    ranked = sorted(pairs, key=lambda pair: pair[0].peak)
    middle = ranked[len(ranked) // 2][0].peak
    top = run.top
    if top is not None and top[1] > 0 and ranked[-1][0].peak > ranked[0][0].peak * APART:
        middle = min((rates.peak for rates, _ in pairs), key=lambda peak: abs(log(peak / top[1])))
    # Of equal ones the default version speaks.
    chosen = next(pair for pair in pairs if pair[0].peak == middle)
    return (*chosen, [(f"{VERSION}{setup.version}", rates) for rates, setup in pairs if rates is not chosen[0]])


_KEPT = 16
"""Kinds of runs that are remembered."""

T = TypeVar("T")


class IdentityKey(Generic[T]):
    """A key that only the same object equals, and that keeps it."""

    __slots__ = ("it",)

    def __init__(self, it: T) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.it is self.it

    def __hash__(self) -> int:
        return id(self.it)


def shared_setup(run: BenchRun, machine: Node | None, given: GivenSetup) -> Setup:
    """setup_of, the same object for runs that tell the same. Raises NoSetupError."""
    devices = tuple(replace(device, pid=0) for device in run.devices)
    known = frozenset({**given, "env": tuple((given.get("env") or {}).items())}.items())
    return _setup(devices, run.nranks, run.nccl, tuple(run.env.items()), IdentityKey(machine), known)


@lru_cache(maxsize=_KEPT)
def _setup(  # noqa: PLR0917 - all that a set-up depends on
    devices: tuple[BenchDevice, ...], nranks: int | None, nccl: str, env: tuple[tuple[str, str], ...],
    machine: IdentityKey[Node | None], known: frozenset[tuple[str, Any]],
) -> Setup:  # fmt: skip
    """The set-up of a run without what was measured."""
    given = dict(known)
    run = BenchRun("", (), devices, nranks, nccl=nccl, env=dict(env))
    return setup_of(run, machine.it, **{**given, "env": dict(given["env"])})


@lru_cache(maxsize=_KEPT)
def versions_of(setup: Setup, collective: str, sizes: tuple[int, ...]) -> tuple[tuple[Rates, Setup], ...]:
    """The rates by the version of a set-up, and by all that it could be as well. Raises NoSetupError for the first."""
    pairs = [(rates_of(setup, collective, sizes), setup)]
    for version in setup.versions:
        other = replace(setup, version=version)
        with suppress(NoSetupError):
            pairs.append((rates_of(other, collective, sizes), other))
    return tuple(pairs)


@lru_cache(maxsize=_KEPT)
def variants_of(setup: Setup, collective: str) -> tuple[tuple[str, Rates], ...]:
    """The rates of the other machines that a set-up may be of, by name."""
    pairs = []
    for variant in setup.others:
        with suppress(NoSetupError):
            pairs.append((variant.name, rates_of(replace(setup, tree=variant.tree, others=()), collective, ())))
    return tuple(pairs)


@lru_cache(maxsize=_KEPT)
def known_shares(setup: Setup, collective: str, raw: float) -> dict[str, float | None]:
    """The shares that causes leave of the bandwidth of a whole machine, whose figure is `raw`, by the causes' words, to
    be looked up and added to; None for one that cannot be."""
    return {}


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
