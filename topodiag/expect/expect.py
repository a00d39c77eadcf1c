"""What a benchmark should reach: NCCL's model of the machine, times what healthy machines of its kind make of it.

With a topology (a node, a file, a log) the expectation is NCCL's own prediction for it; without one, the same model on
the catalogued machine that the system's name or the GPU names and ranks per host stand for, with lower confidence and
with the least of all machines that fit as the bound of what is normal. Where only the NICs of a node are known, and on
AMD's accelerators, whose RCCL decides for itself, it is that of the wires.
"""

from __future__ import annotations

from math import log
from typing import Unpack

from topodiag.expect.calibration import Calibration, Factor, Tolerance, calibration, generation_of
from topodiag.expect.rates import Rates
from topodiag.expect.setup import ANY_NETWORK, GivenSetup, NoSetupError, Setup
from topodiag.expect.shared import shared_setup, variants_of, versions_of
from topodiag.expect.wires import Wires, wire_rates, wires_of
from topodiag.lazy import dataclass
from topodiag.model.bench import BenchRun, Expectation
from topodiag.model.finding import Confidence
from topodiag.model.node import Node
from topodiag.words.units import in_gbs, percent


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
