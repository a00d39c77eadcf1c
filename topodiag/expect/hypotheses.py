"""Which single cause would explain a measured bandwidth: every candidate priced by the model on the changed machine.

A candidate's likelihood grows with how closely it predicts what was measured, with what speaks for it (a setting of the
run, a finding of a check on the node or in the log) and falls with what speaks against it (the same check looked and
found nothing). A fault that the evidence shows comes before all that is inferred from numbers; one that the evidence
excludes is listed as ruled out. What no candidate explains keeps its share, so that the best of bad ones does not look
certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import exp, fsum, isfinite, log, prod

from topodiag.expect.expect import IMPOSSIBLE, LOW, Expected, Verdict, known_shares
from topodiag.expect.hypothesis_causes import SOCKET_GBS, Cause, causes_of, wire_causes
from topodiag.expect.other_runs import ALIKE, Judged, refuted
from topodiag.expect.rates import Rates
from topodiag.expect.settings import is_costly
from topodiag.expect.setup import Setup
from topodiag.expect.wires import Wires
from topodiag.lazy import dataclass
from topodiag.model.bench import BenchRun, Fit, Hypothesis
from topodiag.model.finding import Finding, Outcome, Severity, Status
from topodiag.words.units import in_gbs, percent, plural, spell_bytes, spell_gbs, spell_us

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
AGAIN = 3.0
"""What another check's finding for the same cause adds."""

SHOWN_LEAST = 0.2
"""Of a fault that is shown and costs no more than was lost, the numbers take away no more than to this: it is there,
whatever else is."""

INFERRED = 0.25
"""What a cause without any evidence counts where another fault is shown."""

OVER_SOCKETS = 1.5
"""Times what sockets bring at most from which a run did not go over them."""

LEAST = 0.02
"""Hypotheses below are not worth a reader's time."""
MOST = 6


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known beside the numbers: what the checks say of bundles of the run's nodes and of logs of the run.

    `all_nodes`: every node of the run has a bundle, so that a clean verdict on them excludes a fault. `network` is what
    a log shows in use: `rdma`, `sockets`, ...; "" where none does. `alike`: runs on other nodes that reach the same.
    """

    nodes: tuple[Outcome, ...] = ()
    logs: tuple[Outcome, ...] = ()
    all_nodes: bool = False
    network: str = ""
    alike: int = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found at error level, on logs first."""
        outcomes = (*self.logs, *self.nodes)
        return tuple(
            finding for outcome in outcomes for finding in outcome.findings if finding.severity is Severity.ERROR
        )


@dataclass(frozen=True, slots=True)
class Explained:
    """The causes, likeliest first, and what the evidence excludes, one sentence each."""

    causes: tuple[Hypothesis, ...] = ()
    ruled_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Case:
    """A low run with what was expected of it and what else is known."""

    run: BenchRun
    setup: Setup | None
    """None where only wires are known."""
    rates: Rates
    measured: float
    expected: float
    latency_us: float | None
    known: Evidence

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return (*self.known.nodes, *self.known.logs)


def explain(
    run: BenchRun,
    expected: Expected,
    verdict: Verdict,
    *,
    fit: Fit | None = None,
    known: Evidence | None = None,
    others: Sequence[Judged] = (),
) -> Explained:
    """The causes that would explain a low or impossible verdict, likeliest first; none for any other verdict. `others`
    are runs on the same nodes. Never raises for the content of a run."""
    ground = expected.setup or expected.wires
    if ground is None or expected.rates is None or not verdict.measured_gbs or not verdict.expected_gbs:
        return Explained()
    if verdict.word == IMPOSSIBLE:
        return Explained(tuple(_misread(run, ground, verdict.measured_gbs)))
    if verdict.word != LOW:
        return Explained()
    case = _Case(
        run=run,
        setup=expected.setup,
        rates=expected.rates,
        measured=verdict.measured_gbs,
        expected=verdict.expected_gbs,
        latency_us=fit.latency_us if fit is not None else None,
        known=known or Evidence(),
    )
    weighed: list[Hypothesis] = []
    ruled: list[str] = []
    for cause in _causes(expected, case):
        why = _excluded(case, cause) or _refuted(case, cause, others)
        if why:
            ruled.append(f"{cause.words}: {why}")
        elif (hypothesis := _considered(case, cause)) is not None:
            weighed.append(hypothesis)
    return Explained(_ranked(weighed), tuple(ruled))


def _misread(run: BenchRun, setup: Setup | Wires, measured: float) -> Iterator[Hypothesis]:
    """The readings of a run of which `measured` GB/s would be no wonder."""
    if setup.nodes is not None and setup.nodes > 1:
        words = "the ranks share fewer nodes than assumed, so that less of the traffic crosses the network"
        where = "hostname of every rank (srun -l hostname, mpirun --display-map)"
        weight = 0.6 if any("cut short" in note or "do not list" in note or "does not list" in note
                            for note in setup.assumed) else 0.35  # fmt: skip
        yield Hypothesis(words, measured, weight, (f"{setup.nodes} nodes were assumed",), (where,), "")
    place = (
        "said by the device list" if len(run.devices) == run.nranks else run.nranks_why or "not said by a device list"
    )
    yield Hypothesis(
        "another number of ranks than assumed: bus bandwidth is algorithm bandwidth times a factor of it",
        measured,
        0.1 if len(run.devices) == run.nranks else 0.3,
        (f"{run.nranks} ranks, {place}",),
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


def _refuted(case: _Case, cause: Cause, others: Sequence[Judged]) -> str:
    """Which other run refutes a cause that no evidence shows."""
    shown = bool(cause.shown) or any(spoken.shown for spoken in _speaking(case, cause))
    return "" if shown else refuted(cause, others)


def _considered(case: _Case, cause: Cause) -> Hypothesis | None:
    """The cause with its weight as its likelihood; None where it has no price, or costs nothing."""
    predicted = _priced(case, cause)
    if predicted is None and cause.shown:  # NCCL refuses the machine as it is: no figure speaks for or against it
        cause, predicted = replace(cause, gbs=case.expected, span=(0.0, case.expected)), case.expected
    if predicted is None:
        return None
    weighed = _weigh(case, cause, predicted)
    return weighed if weighed.shown or cause.span or cause.least * predicted <= SLOWS * case.expected else None


def _causes(expected: Expected, case: _Case) -> Iterator[Cause]:
    if expected.setup is not None:
        return causes_of(expected.setup, case.run.collective, case.expected)
    return wire_causes(expected.wires, case.expected) if expected.wires is not None else iter(())


def _excluded(case: _Case, cause: Cause) -> str:
    """What excludes a cause, "" for nothing. A finding or a setting that speaks for it is stronger."""
    if any(True for _ in _settings(case, cause)) and not cause.networks:
        return ""
    if any(outcome.findings for outcome in case.outcomes if outcome.check in cause.checks):
        return ""
    if "sockets" in cause.networks:
        if case.known.network not in ("", "sockets"):
            return f"NCCL's log shows {case.known.network} in use"
        size, gbs = max(((row.size, row.busbw_gbs or 0.0) for row in case.run.rows), key=lambda pair: pair[1])
        if gbs > SOCKET_GBS[1] * OVER_SOCKETS:
            return f"{in_gbs(gbs)} at {spell_bytes(size)} are more than sockets bring"
    sources = [(case.known.logs, cause.cleared_by_log, "the log")]
    if case.known.all_nodes:
        sources.append((case.known.nodes, cause.cleared_by_nodes, "the bundles of all nodes"))
    for outcomes, checks, where in sources:
        for check in checks:
            mine = [outcome for outcome in outcomes if outcome.check == check]
            if mine and all(outcome.status is Status.CLEAN for outcome in mine):
                return f"{check} looked at {where} and found nothing"
    return ""


def _ranked(weighed: list[Hypothesis]) -> tuple[Hypothesis, ...]:
    """The likeliest first, weights made likelihoods."""
    if any(one.shown for one in weighed):
        weighed = [one if one.shown else replace(one, likelihood=one.likelihood * INFERRED) for one in weighed]
    total = fsum(one.likelihood for one in weighed) + UNEXPLAINED
    weighed.sort(key=lambda one: -one.likelihood)
    likely = (replace(one, likelihood=one.likelihood / total) for one in weighed[:MOST])
    return tuple(one for one in likely if one.likelihood >= LEAST)


def _priced(case: _Case, cause: Cause) -> float | None:
    """The bus bandwidth that the run would have reached at its size with this cause alone; None: it cannot be."""
    if cause.gbs is not None or case.setup is None:
        return cause.gbs
    known = known_shares(case.setup, case.run.collective, case.rates.raw)
    if cause.words not in known:
        known[cause.words] = cause.share_left(case.setup, case.rates, case.run.collective)
    share = known[cause.words]
    return None if share is None else case.expected * share


def _weigh(case: _Case, cause: Cause, predicted: float) -> Hypothesis:
    low, high = cause.span or (predicted * cause.least, predicted)
    weight = cause.prior
    if low < high:
        weight *= WIDE if cause.span else PARTLY_WIDE  # it would have explained many other figures as well
        predicted = min(max(case.measured, low), high)
    off = abs(log(case.measured / min(max(case.measured, low), high)))
    speaking = _speaking(case, cause)
    shown = bool(cause.shown) or any(spoken.shown for spoken in speaking)
    fits = exp(-0.5 * (off / SPREAD) ** 2)
    # A fault that is there and leaves more than was measured is part of the cause at least.
    weight *= max(fits, SHOWN_LEAST) if shown and high >= case.measured * (1 - 3 * SPREAD) else fits
    evidence = [_prediction(case, predicted, high if low < high else None)]
    in_part = shown and off > 3 * SPREAD
    if in_part:
        evidence.append("explains part of the loss; the rest has another cause")
    telling = [spoken for spoken in speaking if not (shown and spoken.needless)]
    weight *= prod(spoken.weight for spoken in telling)
    evidence += [spoken.words for spoken in telling]
    given = tuple(spoken.setting for spoken in speaking if spoken.setting)
    check = next(iter(cause.checks), "")
    return Hypothesis(cause.words, predicted, weight, tuple(evidence), cause.confirm, check, shown, given, in_part)


def _prediction(case: _Case, predicted: float, most: float | None) -> str:
    """What a cause predicts; `most` is the top of a range of which it would explain any figure."""
    if most is None:
        ratio = predicted / case.expected
        return f"predicts {in_gbs(predicted)} ({ratio:.2f} of the expectation); measured {spell_gbs(case.measured)}"
    reach = f"up to {in_gbs(most)}" if isfinite(most) else "below the expectation"
    return f"would explain any figure {reach}; measured {case.measured:.1f}"


def _speaking(case: _Case, cause: Cause) -> list[_EvidenceWeight]:
    return [*_settings(case, cause), *_checked(case, cause), *_floor(case, cause), *_alike(case, cause)]


@dataclass(frozen=True, slots=True)
class _EvidenceWeight:
    """What a piece of evidence multiplies a cause by. `shown`: it shows the fault itself."""

    weight: float
    words: str
    shown: bool = False
    indirect: bool = False
    """A sign in the numbers, no sight of the fault."""
    setting: str = ""

    @property
    def needless(self) -> bool:
        """Whether it is a sign against a fault: what is there needs none."""
        return self.indirect and self.weight < 1


def _settings(case: _Case, cause: Cause) -> Iterator[_EvidenceWeight]:
    for name, value in (case.setup.costly if case.setup is not None else case.run.env).items():
        if name in cause.settings and (case.setup is not None or is_costly(name, value)):
            yield _EvidenceWeight(FOR, f"for: {name}={value} is set", shown=True, setting=name)
    if case.setup is None:
        return
    if case.setup.network and case.setup.network in cause.networks:
        shown = case.known.network in cause.networks
        yield _EvidenceWeight(FOR, f"for: the network in use is {case.setup.network}", shown)
    gpu = case.setup.gpu
    if gpu is not None and not gpu.p2p_pcie and "P2P001" in cause.checks:
        yield _EvidenceWeight(FOR, f"for: the driver offers no peer-to-peer over PCIe on {gpu.name}")


def _checked(case: _Case, cause: Cause) -> Iterator[_EvidenceWeight]:
    """What the checks of the nodes and of the log say that find this cause."""
    clean = []
    spoken = 0
    for check in cause.checks:
        mine = [outcome for outcome in case.outcomes if outcome.check == check]
        findings = [finding for outcome in mine for finding in outcome.findings]
        if findings:
            worst = max(findings, key=lambda finding: finding.severity)
            shown = worst.severity > Severity.INFO
            factor = AGAIN if spoken else FOR
            yield _EvidenceWeight(factor, f"for: {check}: {worst.message}", shown)
            spoken += 1
        elif mine and all(outcome.status is Status.CLEAN for outcome in mine):
            clean.append(check)
    if clean and len(clean) == len(cause.checks):
        yield _EvidenceWeight(AGAINST, f"against: {', '.join(clean)} looked and found nothing")


def _floor(case: _Case, cause: Cause) -> Iterator[_EvidenceWeight]:
    """What the time of the smallest operations says of a transport that is slow to start."""
    if not cause.slow_start or not case.latency_us or not case.rates.latency_us:
        return
    times = case.latency_us / case.rates.latency_us
    if times >= SLOW_START:
        words = f"for: the smallest operation takes {spell_us(case.latency_us)}, {times:.1f} times what NCCL assumes"
        yield _EvidenceWeight(3.0, words, indirect=True)
    elif times < QUICK_START:
        words = f"against: the smallest operation takes {spell_us(case.latency_us)}, no more than NCCL assumes"
        yield _EvidenceWeight(0.2, words, indirect=True)


def _alike(case: _Case, cause: Cause) -> Iterator[_EvidenceWeight]:
    """The same figure on several nodes speaks for what they have in common, and not for a fault of a part."""
    if cause.of_part and case.known.alike:
        words = f"against: {plural(case.known.alike, 'run')} on other nodes to within {percent(1 - ALIKE)}"
        yield _EvidenceWeight(AGAINST, words, indirect=True)
