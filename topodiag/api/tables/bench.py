"""Tables of measured runs: the verdict on each, and its sizes."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.api.tables.interface import Part, Table, columns
from topodiag.model.result import Result
from topodiag.report.bench.json import benchmark_facts


def _runs(result: Result) -> list[Part]:
    return [Part(number, benchmark_facts(each)) for number, each in enumerate(result.benchmarks)]


def _sizes(result: Result) -> Iterator[Part]:
    return (Part(run.owner, row) for run in _runs(result) for row in run.rows)


BENCHMARKS = Table(
    "Measured runs and the verdict on each.",
    columns("""
        run whole = owner: Number of the run.
        source text: File.
        line whole: Where the run begins.
        collective text: Collective.
        nranks whole: Ranks.
        hosts text: Nodes, parted by blanks.
        nccl text = nccl_version: Version of NCCL.
        verdict text: normal, low, impossible or unknown.
        why text: Why.
        plateau_busbw_gbs number GB/s = fit.plateau_busbw_gbs: Bus bandwidth of the largest sizes.
        expected_busbw_gbs number GB/s: Bus bandwidth that the machine should reach.
        low_gbs number GB/s = expected.low_gbs: Below this it is low.
        limit_gbs number GB/s = expected.limit_gbs: Above this it is impossible.
        confidence text = expected.confidence: How sure the expectation is: low, medium or high.
        alpha_us number us = fit.alpha_us: Fitted start-up time of the smallest sizes.
        beta_gbs number GB/s = fit.beta_gbs: Fitted algorithm bandwidth of the largest sizes.
        latency_us number us = fit.latency_us: Time of the smallest sizes.
        expected_latency_us number us = expected.latency_us: Time that the smallest sizes should take.
        cause text = hypotheses.0.cause: The likeliest cause, where the run is low.
        out_of_bounds whole: Wrong values that the run itself counted.
        complete truth: Whether the output is whole.
        placement text: Placement, with by_file.
    """),
    _runs,
)
BENCHMARK_SIZES = Table(
    "Sizes of the measured runs.",
    columns("""
        run whole = owner: Number of the run, as in benchmarks.
        bytes whole bytes: Size.
        count whole: Elements.
        type text: Type of an element.
        redop text: Reduction.
        root whole: Root, -1 where there is none.
        time_us number us: Time.
        algbw_gbs number GB/s: Algorithm bandwidth.
        busbw_gbs number GB/s: Bus bandwidth.
        wrong number: Wrong values.
        expected_busbw_gbs number GB/s: Bus bandwidth to expect at this size.
        in_place_time_us number us = in_place.time_us: Time in place.
        in_place_algbw_gbs number GB/s = in_place.algbw_gbs: Algorithm bandwidth in place.
        in_place_busbw_gbs number GB/s = in_place.busbw_gbs: Bus bandwidth in place.
        in_place_wrong number = in_place.wrong: Wrong values in place.
        cut truth: Whether the row is cut short.
    """),
    _sizes,
)
