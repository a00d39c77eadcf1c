"""BEN001: low with the likeliest cause; silent where there is too little to judge by."""

from __future__ import annotations

from tests.checks.benches import GIB, GROWING, KIB, MIB, benchmark, expectation, judge, sweep
from topodiag.model.bench import Hypothesis
from topodiag.model.finding import Confidence, Severity, Status

NIC = Hypothesis("1 of 8 NICs not used", 340.0, 0.6, (), ("NCCL_DEBUG=INFO: `NET/IB : Using`",), "NET003")
LOW = sweep({size: gbs * 0.87 for size, gbs in GROWING.items()})


def test_a_low_run_is_a_finding_with_its_cause_and_cost() -> None:
    outcome = judge("BEN001", benchmark(LOW, "low", hypotheses=(NIC,)))
    assert outcome.status is Status.FINDING
    (finding,) = outcome.findings
    assert finding.severity is Severity.WARNING
    assert "likely cause: 1 of 8 NICs not used" in finding.message
    assert finding.where.nodes == ("n0", "n1")
    assert finding.cost.gbs_lost is not None
    assert abs(finding.cost.gbs_lost - (388 - 390 * 0.87)) < 0.1
    assert "topodiag explain NET003" in finding.fix[0]


def test_less_than_half_is_an_error() -> None:
    slow = sweep({size: gbs / 3 for size, gbs in GROWING.items()})
    assert judge("BEN001", benchmark(slow, "low", severe=True)).findings[0].severity is Severity.ERROR


def test_one_size_is_enough_where_it_is_far_below() -> None:
    one = sweep({8 * GIB: 8.0})
    assert judge("BEN001", benchmark(one, "low", severe=True)).findings[0].severity is Severity.ERROR
    assert judge("BEN001", benchmark(sweep({8 * GIB: 300.0}), "low")).status is Status.UNKNOWN


def test_on_a_guessed_machine_it_stays_a_warning_of_low_confidence() -> None:
    slow = sweep({size: gbs / 3 for size, gbs in GROWING.items()})
    guessed = benchmark(slow, "low", expected=expectation(confidence=Confidence.LOW))
    finding = judge("BEN001", guessed).findings[0]
    assert finding.severity is Severity.WARNING
    assert finding.confidence is Confidence.LOW


def test_an_unlikely_cause_is_not_named_in_the_message() -> None:
    unsure = Hypothesis("1 of 8 NICs not used", 340.0, 0.2, (), ("look",), "NET003")
    finding = judge("BEN001", benchmark(LOW, "low", hypotheses=(unsure,))).findings[0]
    assert "NICs not used" not in finding.message
    assert "NICs not used" in finding.fix[0]


def test_a_normal_run_is_clean() -> None:
    assert judge("BEN001", benchmark()).status is Status.CLEAN


def test_too_few_sizes_are_unknown() -> None:
    short = sweep({1 * GIB: 100.0, 8 * GIB: 100.0})
    assert judge("BEN001", benchmark(short, "low")).status is Status.UNKNOWN


def test_a_run_that_is_bound_by_latency_or_of_no_known_machine_is_unknown() -> None:
    small = sweep({8: 0.1, KIB: 1.0, MIB: 9.0})
    assert judge("BEN001", benchmark(small, "unknown")).status is Status.UNKNOWN
    assert judge("BEN001", benchmark(expected=None)).status is Status.UNKNOWN


def test_an_impossible_bandwidth_is_no_low_one() -> None:
    outcome = judge("BEN001", benchmark(verdict="impossible"))
    assert outcome.status is Status.UNKNOWN
    assert "impossible" in outcome.why
