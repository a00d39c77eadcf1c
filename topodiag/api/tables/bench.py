"""Tables of measured runs: the verdict on each, and its sizes."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.api.tables.interface import Row, Table, columns, flat, joined
from topodiag.model.result import Result
from topodiag.report.bench.json import benchmark_facts


def _runs(result: Result) -> Iterator[Row]:
    for number, benchmark in enumerate(result.benchmarks):
        run = benchmark_facts(benchmark)
        expected = run.expected
        yield (
            number, *flat(run, "source", "line", "collective", "nranks"), joined(run.hosts), run.nccl_version,
            *flat(run, "verdict", "why"), run.fit.plateau_busbw_gbs, run.expected_busbw_gbs,
            expected.low_gbs if expected else None, expected.limit_gbs if expected else None,
            expected.confidence if expected else None, run.fit.alpha_us, run.fit.beta_gbs, run.fit.latency_us,
            expected.latency_us if expected else None, run.hypotheses[0].cause if run.hypotheses else None,
            run.out_of_bounds, run.complete, run.placement,
        )  # fmt: skip


def _sizes(result: Result) -> Iterator[Row]:
    for number, benchmark in enumerate(result.benchmarks):
        for row in benchmark_facts(benchmark).rows:
            yield (
                number, *flat(row, "bytes", "count", "type", "redop", "root", "time_us", "algbw_gbs", "busbw_gbs"),
                *flat(row, "wrong", "expected_busbw_gbs"),
                *flat(row.in_place, "time_us", "algbw_gbs", "busbw_gbs", "wrong"), row.cut,
            )  # fmt: skip


BENCHMARKS = Table(
    "Measured runs and the verdict on each.",
    columns("""
        run whole: Number of the run.
        source text: File.
        line whole: Where the run begins.
        collective text: Collective.
        nranks whole: Ranks.
        hosts text: Nodes, parted by blanks.
        nccl text: Version of NCCL.
        verdict text: normal, low, impossible or unknown.
        why text: Why.
        plateau_busbw_gbs number GB/s: Bus bandwidth of the largest sizes.
        expected_busbw_gbs number GB/s: Bus bandwidth that the machine should reach.
        low_gbs number GB/s: Below this it is low.
        limit_gbs number GB/s: Above this it is impossible.
        confidence text: How sure the expectation is: low, medium or high.
        alpha_us number us: Fitted start-up time of the smallest sizes.
        beta_gbs number GB/s: Fitted algorithm bandwidth of the largest sizes.
        latency_us number us: Time of the smallest sizes.
        expected_latency_us number us: Time that the smallest sizes should take.
        cause text: The likeliest cause, where the run is low.
        out_of_bounds whole: Wrong values that the run itself counted.
        complete truth: Whether the output is whole.
        placement text: Placement, with by_file.
    """),
    _runs,
)
BENCHMARK_SIZES = Table(
    "Sizes of the measured runs.",
    columns("""
        run whole: Number of the run, as in benchmarks.
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
        in_place_time_us number us: Time in place.
        in_place_algbw_gbs number GB/s: Algorithm bandwidth in place.
        in_place_busbw_gbs number GB/s: Bus bandwidth in place.
        in_place_wrong number: Wrong values in place.
        cut truth: Whether the row is cut short.
    """),
    _sizes,
)
