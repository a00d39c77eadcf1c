"""BEN007: single iterations (nccl-tests' -I 1) or blocks of a size that take several times as long as the others."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.checks.benches import benchmark, judge, sweep
from tests.checks.wanted import expect
from topodiag.evidence.nccl_tests.read import read_runs
from topodiag.model.bench import Benchmark, Timing
from topodiag.model.finding import Status

TABLE = """\
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 100 agg iters: 1
#                                                       out-of-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong   i_min   i_max   i_p99   i_cv%
     1048576        262144     float     sum      -1    35.10   29.87   29.87       0   34.00   390.0   380.0   99.0
"""


def run(ratio: float, sizes: int, iterations: str = "100", usual: str = "median") -> Benchmark:
    """A sweep whose largest `sizes` have a 99th percentile of `ratio` times the usual time."""
    bench_run = sweep()
    rows = []
    for number, row in enumerate(bench_run.rows):
        us = row.out_of_place.time_us or 0.0
        times = ratio if number >= len(bench_run.rows) - sizes else 1.1
        block = replace(row.out_of_place, p99_us=us * times, p50_us=us if usual == "median" else None)
        rows.append(replace(row, out_of_place=block))
    return benchmark(replace(bench_run, rows=tuple(rows), parameters={"iters": iterations}))


@pytest.mark.parametrize("usual", ["median", "mean"])
def test_sizes_whose_slowest_hundredth_stands_out_are_named(usual: str) -> None:
    outcome = judge("BEN007", run(10.0, 2, usual=usual))
    expect(outcome, message=["*takes 10.0 times as long as usual*", "*at 2 of 7 sizes*"])


@pytest.mark.parametrize(
    "made",
    [run(2.5, 5), run(10.0, 1), run(10.0, 3, iterations="20"), run(10.0, 3, iterations="")],
    ids=["little", "one size", "few iterations", "unknown iterations"],
)
def test_little_jitter_one_size_and_one_slow_iteration_are_silent(made: Benchmark) -> None:
    assert judge("BEN007", made).status is Status.CLEAN


def test_few_iterations_count_where_most_sizes_show_it() -> None:
    assert judge("BEN007", run(10.0, 5, iterations="20")).findings


def blocks(slow: int, times: float = 4.0, **known: Any) -> Benchmark:
    """A sweep whose largest `slow` sizes take `times` as long in place as out of place."""
    bench_run = sweep()
    steady = len(bench_run.rows) - slow
    rows = [
        replace(row, in_place=Timing((row.out_of_place.time_us or 0.0) * (times if number >= steady else 1.0)))
        for number, row in enumerate(bench_run.rows)
    ]
    return benchmark(replace(bench_run, rows=tuple(rows), **known))


def test_a_run_whose_blocks_lie_far_apart_at_some_sizes_is_unsteady() -> None:
    expect(judge("BEN007", blocks(2)), message=["*is unsteady: 4.0 times as slow*", "*at 2 of 7 sizes*"])


@pytest.mark.parametrize(
    "made", [blocks(2, times=2.5), blocks(1), blocks(4)], ids=["little", "one size", "half of the sizes"]
)
def test_blocks_that_differ_little_once_or_always_are_silent(made: Benchmark) -> None:
    assert judge("BEN007", made).status is Status.CLEAN


one_block = benchmark(replace(sweep(), rows=tuple(replace(row, in_place=Timing()) for row in sweep().rows)))


@pytest.mark.parametrize("made", [one_block, blocks(2, nranks=1)], ids=["one block", "one rank"])
def test_a_run_without_single_times_and_two_blocks_is_not_judged(made: Benchmark) -> None:
    assert judge("BEN007", made).status is Status.NOT_APPLICABLE


def test_the_table_and_the_json_hold_the_percentiles() -> None:
    (table,), _ = read_runs(TABLE.encode(), "out.txt")
    assert (table.rows[0].out_of_place.p99_us, table.rows[0].out_of_place.p50_us) == (380.0, None)
    block = {
        "time": 35.1,
        "alg_bw": 29.9,
        "bus_bw": 29.9,
        "nwrong": 0,
        "per_iter_timing": {"p50_us": 34, "p99_us": 380},
    }
    data = {
        "version": "2.19",
        "results": [{"size": 1 << 20, "count": 1 << 18, "out_of_place": block}],
        "out_of_bounds": 0,
    }
    (bench_run,), _ = read_runs(json.dumps(data).encode(), "out.json")
    assert (bench_run.rows[0].out_of_place.p50_us, bench_run.rows[0].out_of_place.p99_us) == (34.0, 380.0)
