"""BEN002: the floor of small sizes against NCCL's latency; silent without small sizes or a model."""

from __future__ import annotations

from dataclasses import replace

from tests.checks.benches import GIB, GROWING, KIB, benchmark, expectation, judge, sweep
from topodiag.model.bench import Fit
from topodiag.model.finding import Confidence, Status


def test_a_floor_of_many_times_the_links_latency_is_a_finding() -> None:
    outcome = judge("BEN002", benchmark(fit=Fit(latency_us=368.0)))
    assert outcome.status is Status.FINDING
    assert "15 times" in outcome.findings[0].message
    assert "NET001" in " ".join(outcome.findings[0].fix)


def test_what_healthy_networks_show_is_clean() -> None:
    assert judge("BEN002", benchmark(fit=Fit(latency_us=123.0))).status is Status.CLEAN


def test_within_a_node_less_is_high() -> None:
    one = sweep(devices=sweep().devices[:8], nranks=8)
    assert judge("BEN002", benchmark(one, fit=Fit(latency_us=150.0))).status is Status.FINDING
    assert judge("BEN002", benchmark(one, fit=Fit(latency_us=66.0))).status is Status.CLEAN


def test_a_few_microseconds_are_no_matter_whatever_the_ratio() -> None:
    quick = benchmark(fit=Fit(latency_us=40.0), expected=expectation(latency_us=3.0))
    assert judge("BEN002", quick).status is Status.CLEAN


def test_without_small_sizes_or_a_floor_it_is_unknown() -> None:
    large = sweep({size: gbs for size, gbs in GROWING.items() if size > 4 * KIB})
    assert judge("BEN002", benchmark(large, fit=Fit(latency_us=999.0))).status is Status.UNKNOWN
    assert judge("BEN002", benchmark(fit=Fit())).status is Status.UNKNOWN
    assert judge("BEN002", benchmark(sweep({8 * GIB: 1.0}), fit=Fit())).status is Status.UNKNOWN


def test_without_a_latency_model_it_is_unknown() -> None:
    assert judge("BEN002", benchmark(expected=expectation(latency_us=None))).status is Status.UNKNOWN
    assert judge("BEN002", benchmark(expected=None)).status is Status.UNKNOWN


def test_merged_or_replayed_operations_do_not_count() -> None:
    for parameters in ({"graph": "1"}, {"aggIters": "20"}):
        merged = replace(sweep(), parameters=parameters)
        assert judge("BEN002", benchmark(merged, fit=Fit(latency_us=900.0))).status is Status.NOT_APPLICABLE


def test_a_guessed_machine_makes_it_a_hint() -> None:
    guessed = benchmark(fit=Fit(latency_us=900.0), expected=expectation(confidence=Confidence.LOW))
    assert judge("BEN002", guessed).findings[0].confidence is Confidence.LOW
