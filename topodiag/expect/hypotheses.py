"""Which single cause would explain a measured bandwidth: every candidate priced by the model on the changed machine.

A candidate's likelihood grows with how closely it predicts what was measured, with what speaks for it (a setting of the
run, a finding of a check on the node or in the log) and falls with what speaks against it (the same check looked and
found nothing). What no candidate explains keeps its share, so that the best of bad ones does not look certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log

from topodiag.expect.calibration import Calibration, Factor, calibration, generation_of
from topodiag.expect.expect import Expected
from topodiag.expect.hypothesis_causes import Cause, causes_of, wire_causes
from topodiag.expect.rates import Rates, rates_of
from topodiag.expect.setup import NoSetupError, Setup, is_costly
from topodiag.expect.verdict import IMPOSSIBLE, LOW, Verdict
from topodiag.expect.wires import Wires
from topodiag.model.bench import BenchRun, Fit, Hypothesis
from topodiag.model.finding import Outcome, Status
from topodiag.nccl.topo.changes import ChangeError

SPREAD = 0.07
"""How far a right cause's prediction is off, as a share: what healthy machines show around their own expectation."""

UNEXPLAINED = 0.08
"""Weight of a cause that is not among the candidates: one of prior 1 that is off by 2.2 spreads weighs as much."""

WIDE, PARTLY_WIDE = 0.5, 0.3
"""What a cause that would explain any figure of a range counts against one that predicts the figure: of the range where
nothing else can lie, and of that below a predicted figure."""

SLOWS = 0.985
"""A cause that leaves more than this share would not have been noticed."""

SLOW_START, QUICK_START = 3.0, 1.5
"""Times NCCL's own latency from which the latency floor speaks for a slower transport, and below which against it."""

FOR, AGAINST = 12.0, 0.08
"""What a check's finding, or its clean verdict, multiplies a cause by."""

LEAST = 0.02
"""Hypotheses below are not worth a reader's time."""
MOST = 6


@dataclass(frozen=True, slots=True)
class _Weighed:
    cause: Cause
    predicted: float
    weight: float
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Case:
    """A low run with what was expected of it and what else is known."""

    run: BenchRun
    setup: Setup | None
    """None where only wires are known."""
    rates: Rates
    factor: Factor | None
    size: int
    measured: float
    expected: float
    latency_us: float | None
    outcomes: Sequence[Outcome]
    fitted: Calibration


def hypotheses(
    run: BenchRun,
    made: Expected,
    verdict: Verdict,
    *,
    fit: Fit | None = None,
    outcomes: Sequence[Outcome] = (),
    fitted: Calibration | None = None,
) -> tuple[Hypothesis, ...]:
    """The causes that would explain a low or impossible verdict, likeliest first; () for any other verdict.

    `outcomes` are those of checks on the nodes and on a log of the same run. Never raises for the content of a run.
    """
    ground = made.setup or made.wires
    if ground is None or made.rates is None or not verdict.measured_gbs or not verdict.expected_gbs:
        return ()
    if verdict.word == IMPOSSIBLE:
        return tuple(_misread(run, ground, verdict.measured_gbs))
    if verdict.word != LOW:
        return ()
    case = _Case(
        run=run,
        setup=made.setup,
        rates=made.rates,
        factor=made.factor,
        size=verdict.size,
        measured=verdict.measured_gbs,
        expected=verdict.expected_gbs,
        latency_us=fit.latency_us if fit is not None else None,
        outcomes=outcomes,
        fitted=fitted or calibration(),
    )
    weighed = []
    for cause in _causes(made, run, verdict.expected_gbs):
        predicted = _priced(case, cause)
        if predicted is not None and (cause.span or cause.least * predicted <= SLOWS * case.expected):
            weighed.append(_weigh(case, cause, predicted))
    return _ranked(weighed)


def _causes(made: Expected, run: BenchRun, expected: float) -> Iterator[Cause]:
    if made.setup is not None:
        yield from causes_of(made.setup, run.collective)
    elif made.wires is not None:
        yield from wire_causes(made.wires, expected)


def _ranked(weighed: list[_Weighed]) -> tuple[Hypothesis, ...]:
    total = sum(each.weight for each in weighed) + UNEXPLAINED
    weighed.sort(key=lambda each: -each.weight)
    return tuple(
        Hypothesis(
            each.cause.words,
            each.predicted,
            each.weight / total,
            each.evidence,
            each.cause.confirm,
            each.cause.checks[0] if each.cause.checks else "",
        )
        for each in weighed[:MOST]
        if each.weight / total >= LEAST
    )


def _priced(case: _Case, cause: Cause) -> float | None:
    """The bus bandwidth that the run would have reached at its size with this cause alone; None: it cannot be."""
    if cause.gbs is not None or case.setup is None:
        return cause.gbs
    try:
        setup = cause.change(case.setup)
        rates = rates_of(setup, case.run.collective, (case.size,))
    except (NoSetupError, ChangeError):
        return None
    # Where the cause leaves the transport as it is, so does the factor stay.
    kept = case.factor if rates.transport == case.rates.transport else None
    factor = kept or case.fitted.of(generation_of(setup.sm), rates.transport, case.run.collective)
    return rates.busbw.get(case.size, rates.peak) * factor.factor


def _weigh(case: _Case, cause: Cause, predicted: float) -> _Weighed:
    low, high = cause.span or (predicted * cause.least, predicted)
    weight = cause.prior
    if low < high:
        weight *= WIDE if cause.span else PARTLY_WIDE  # it would have explained many other figures as well
        predicted = min(max(case.measured, low), high)
    off = abs(log(case.measured / min(max(case.measured, low), high)))
    weight *= exp(-0.5 * (off / SPREAD) ** 2)
    ratio = predicted / case.expected
    evidence = [f"predicts {predicted:.1f} GB/s ({ratio:.2f} of the expectation); measured {case.measured:.1f}"]
    if low < high:
        reach = f"up to {high:.0f} GB/s" if isfinite(high) else "below the expectation"
        evidence = [f"would explain any figure {reach}; measured {case.measured:.1f}"]
    for speaks, words in (*_settings(case, cause), *_checked(case, cause), *_floor(case, cause)):
        weight *= speaks
        evidence.append(words)
    return _Weighed(cause, predicted, weight, tuple(evidence))


def _settings(case: _Case, cause: Cause) -> Iterator[tuple[float, str]]:
    if case.setup is None:
        costly = {name: value for name, value in case.run.env.items() if is_costly(name, value)}
        yield from ((FOR, f"for: {name}={value} is set") for name, value in costly.items() if name in cause.settings)
        return
    for name, value in case.setup.costly.items():
        if name in cause.settings:
            yield FOR, f"for: {name}={value} is set"
    if case.setup.network and case.setup.network in cause.networks:
        yield FOR, f"for: the network in use is {case.setup.network}"
    gpu = case.setup.gpu
    if gpu is not None and not gpu.p2p_pcie and "P2P001" in cause.checks:
        yield FOR, f"for: the driver offers no peer-to-peer over PCIe on {gpu.name}"


def _checked(case: _Case, cause: Cause) -> Iterator[tuple[float, str]]:
    """What the checks of the nodes and of the log say that find this cause."""
    clean = []
    for check in cause.checks:
        mine = [each for each in case.outcomes if each.check == check]
        found = [finding for outcome in mine for finding in outcome.findings]
        if found:
            yield FOR, f"for: {check}: {found[0].message}"
            return
        if mine and all(each.status is Status.CLEAN for each in mine):
            clean.append(check)
    if clean and len(clean) == len(cause.checks):
        yield AGAINST, f"against: {', '.join(clean)} looked and found nothing"


def _floor(case: _Case, cause: Cause) -> Iterator[tuple[float, str]]:
    """What the time of the smallest operations says of a transport that is slow to start."""
    if not cause.slow_start or not case.latency_us or not case.rates.latency_us:
        return
    times = case.latency_us / case.rates.latency_us
    if times >= SLOW_START:
        yield 3.0, f"for: the smallest operation takes {case.latency_us:.0f} us, {times:.1f} times what NCCL reckons"
    elif times < QUICK_START:
        yield 0.2, f"against: the smallest operation takes {case.latency_us:.0f} us, no more than NCCL reckons"


def _misread(run: BenchRun, setup: Setup | Wires, measured: float) -> Iterator[Hypothesis]:
    """What would make an impossible bandwidth possible: other ranks or another placement than assumed."""
    if setup.nodes is not None and setup.nodes > 1:
        words = "the ranks share fewer nodes than assumed, so that less of the traffic crosses the network"
        where = "hostname of every rank (srun -l hostname, mpirun --display-map)"
        weight = 0.6 if any("cut short" in each or "do not list" in each or "does not list" in each
                            for each in setup.assumed) else 0.35  # fmt: skip
        yield Hypothesis(words, measured, weight, (f"{setup.nodes} nodes were assumed",), (where,), "")
    told = (
        "said by the device list" if len(run.devices) == run.nranks else run.nranks_why or "not said by a device list"
    )
    yield Hypothesis(
        "another number of ranks than assumed: bus bandwidth is algorithm bandwidth times a factor of it",
        measured,
        0.1 if len(run.devices) == run.nranks else 0.3,
        (f"{run.nranks} ranks, {told}",),
        ("the `Using devices` list of nccl-tests, complete",),
        "",
    )
    yield Hypothesis(
        f"another machine than {setup.machine}: faster links or more NICs",
        measured,
        0.5 if str(setup.confidence) == "low" else 0.2,
        tuple(setup.assumed[:2]),
        ("topodiag scan --save node.tar.gz on a node, then topodiag bench --machine node.tar.gz",),
        "",
    )
