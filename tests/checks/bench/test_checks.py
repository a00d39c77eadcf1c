"""The checks of benchmarks, BEN001 to BEN007: what each finds, and what stays silent."""

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from tests.checks.benches import GROWING, MIB, Given, benchmark, expectation, judge, of_row, sweep
from tests.checks.nodes import only
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.checks.shared.bench_text import same_run
from topodiag.checks.shared.phrases import phrases
from topodiag.evidence.nccl_tests import read_file
from topodiag.model.bench import Benchmark, BenchRow, BenchRun, Fit, Hypothesis, Timing
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.provenance import Origin

NIC = Hypothesis("1 of 8 NICs not used", 340.0, 0.6, (), ("NCCL_DEBUG=INFO: `NET/IB : Using`",), "NET003")
LOW = sweep({size: gbs * 0.87 for size, gbs in GROWING.items()})


def test_a_low_run_is_a_finding_with_its_cause_and_cost() -> None:
    outcome = judge("BEN001", benchmark(LOW, "low", hypotheses=(NIC,)))
    assert outcome.status is Status.FINDING
    (finding,) = outcome.findings
    assert finding.severity is Severity.WARNING
    assert "possible cause: 1 of 8 NICs not used" in finding.message
    assert finding.where.nodes == ("n0", "n1")
    assert abs(finding.cost.gbs_lost - (388 - 390 * 0.87)) < 0.1
    assert "topodiag explain NET003" in finding.fix[0]


@examples("check", "given", "wanted")
def test_the_checks_of_a_run(check: str, given: Given, wanted: Wanted) -> None:
    assert shown(judge(check, of_row(given)), wanted) == wanted


def test_a_cause_is_named_by_how_likely_it_is() -> None:
    (likely,) = judge("BEN001", benchmark(LOW, "low", hypotheses=(replace(NIC, shown=True),))).findings
    assert "likely cause: 1 of 8 NICs not used" in likely.message
    (unsure,) = judge("BEN001", benchmark(LOW, "low", hypotheses=(replace(NIC, likelihood=0.2),))).findings
    assert "NICs not used" not in unsure.message
    assert "NICs not used" in unsure.fix[0]


# --- BEN002: the floor of small sizes against NCCL's latency; silent without small sizes or a model


def test_within_a_node_less_is_high() -> None:
    one = sweep(devices=sweep().devices[:8], nranks=8)
    assert judge("BEN002", benchmark(one, fit=Fit(latency_us=150.0))).status is Status.FINDING
    assert judge("BEN002", benchmark(one, fit=Fit(latency_us=66.0))).status is Status.CLEAN


# --- BEN003: a size that is slower than smaller ones; noise, small sizes and what the model expects stay silent


DIP = GROWING | {64 * MIB: 120.0}


def test_a_size_with_a_fraction_is_an_option_of_nccl_tests() -> None:
    finding = only(judge("BEN003", benchmark(sweep(GROWING | {12562575360: 30.0}))))
    assert finding.confirm[0] == ("-b LOW -e HIGH", "-b 8G -e 11.7G")


@examples("run", "command")
def test_a_command_of_a_page_measures_the_same_run_again(run: Given, command: str) -> None:
    page = "all_reduce_perf -b 1G -e 2G -g 8"
    for name, value in same_run(of_row({"run": run}).run, "-b 1G -e 2G"):
        page = page.replace(name, value)
    assert page == command


def test_a_size_that_is_slow_in_one_block_only_is_noise() -> None:
    run = sweep(DIP)
    rows = tuple(replace(row, in_place=Timing(1.0, 160.0, 300.0)) if row.size == 64 * MIB else row for row in run.rows)
    assert judge("BEN003", benchmark(replace(run, rows=rows))).status is Status.CLEAN


def test_one_slow_repetition_among_others_is_noise() -> None:
    run = sweep(GROWING)
    again = BenchRow(64 * MIB, out_of_place=Timing(1.0, 50.0, 90.0))
    assert judge("BEN003", benchmark(replace(run, rows=(*run.rows, again)))).status is Status.CLEAN


@pytest.mark.parametrize(("in_place", "unsteady"), [(70.0, True), (20.0, False)])
def test_blocks_of_one_size_that_lie_far_apart_show_an_unsteady_run_and_no_algorithm(
    in_place: float, unsteady: bool
) -> None:
    run = sweep(DIP | {MIB: 15.0})
    rows = tuple(replace(row, in_place=Timing(1.0, 9.0, in_place)) if row.size == MIB else row for row in run.rows)
    expected = expectation(terms=(("NCCL runs", "Ring/Simple", f"from {64 * MIB} B"),))
    finding = only(judge("BEN003", benchmark(replace(run, rows=rows), expected=expected)))
    assert ("(unsteady: 15 and 70 GB/s at 1 MiB)" in finding.message) is unsteady
    assert ("may go over to Ring/Simple" in finding.message) is not unsteady
    assert any("NCCL_PROTO" in step for step in finding.fix) is not unsteady


# --- BEN004: wrong elements are an error; validation that was off says nothing


def with_wrong(*wrong: float | None) -> object:
    rows = tuple(BenchRow((1 << at) * MIB, out_of_place=Timing(1.0, 1.0, 1.0, each)) for at, each in enumerate(wrong))
    return benchmark(sweep(rows=rows, out_of_bounds=None))


def test_wrong_elements_are_an_error_at_their_sizes() -> None:
    outcome = judge("BEN004", with_wrong(0.0, 3.0, 0.0))  # type: ignore[arg-type]
    expect(outcome, severity="ERROR", message="*3 wrong values at 2 MiB*")


def test_validation_of_which_no_row_has_a_count_is_not_applicable() -> None:
    assert judge("BEN004", with_wrong(None, None)).status is Status.NOT_APPLICABLE  # type: ignore[arg-type]


# --- BEN005: placements of one collective that are more than 30 % apart; anything that differs else is no placement
#


def placed(name: str, share: float = 1.0, **known: object) -> Benchmark:
    rows = sweep({size: gbs * share for size, gbs in GROWING.items()})
    return benchmark(replace(rows, placement=name, **known))  # type: ignore[arg-type]


@examples("runs", "wanted")
def test_a_run_beside_those_of_other_placements(runs: list[Given], wanted: Wanted) -> None:
    """The first run is judged."""
    made, *others = map(of_row, runs)
    assert shown(judge("BEN005", made, *others), wanted) == wanted


def test_hosts_stand_for_a_placement_without_a_name() -> None:
    other = replace(sweep(), devices=tuple(replace(device, host=f"m{device.host}") for device in sweep().devices))
    slow = benchmark(sweep({size: gbs * 0.5 for size, gbs in GROWING.items()}))
    assert "n0, n1 is 50 % slower than mn0, mn1" in judge("BEN005", slow, benchmark(other)).findings[0].message


def test_all_checks_run_over_all_runs_and_never_fail() -> None:
    outcomes = run(Subject.BENCH, [placed("a", 0.5), placed("b"), Benchmark(BenchRun("", ()))])
    assert len(outcomes) == 24
    assert not [outcome for outcome in outcomes if outcome.why.startswith("the check failed")]
    assert [outcome.node for outcome in outcomes if outcome.status is Status.FINDING] == ["a all_reduce"]


def pairs(slow: set[frozenset[str]], nodes: str = "abcde") -> list[Benchmark]:
    """Runs of all pairs of nodes; those in `slow` reach 0.6 of the others."""
    benchmarks = []
    for one, other in combinations(nodes, 2):
        rows = sweep({size: gbs * (0.6 if frozenset((one, other)) in slow else 1.0) for size, gbs in GROWING.items()})
        devices = tuple(
            replace(device, host={"n0": one, "n1": other}.get(device.host, device.host)) for device in rows.devices
        )
        benchmarks.append(benchmark(replace(rows, devices=devices)))
    return benchmarks


def told(runs: list[Benchmark]) -> dict[str, tuple[str, ...]]:
    """Nodes by message of all findings on these runs."""
    findings = [
        finding
        for run in runs
        for finding in judge("BEN005", run, *(other for other in runs if other is not run)).findings
    ]
    return {finding.message: finding.where.nodes for finding in findings}


def test_a_node_that_all_slow_pairs_share_is_one_fault_of_that_node() -> None:
    answer = told(pairs({frozenset(("c", other)) for other in "abde"}))
    assert list(answer.values()) == [("c",)]
    assert "c: all 4 runs of all_reduce with this node are at least 40 % slower" in next(iter(answer))


@examples("slow")
def test_slow_pairs_without_one_node_of_all_stay_pairs(slow: set[frozenset[str]]) -> None:
    assert all(len(nodes) == 2 for nodes in told(pairs(slow)).values())
    assert len(told(pairs(slow))) == len(slow)


# --- BEN006: a benchmark that ended with an error is one, with the cause that its text names


NCCL = "n0: Test NCCL failure common.cu:959 'remote process exited or there was a network error / '"
UNWIND = " .. n0 pid 100: Test failure common.cu:1208"


def failed(*lines: str) -> BenchRun:
    (run,) = read_file("\n".join(lines).encode(), "out.log").runs
    return run


def test_a_crashed_run_is_an_error_that_names_its_cause_and_cites_the_line() -> None:
    outcome = judge("BEN006", benchmark(failed(NCCL, UNWIND), "unknown"))
    finding = expect(outcome, severity="ERROR", message="*the first error is another rank's*")
    assert [origin.text for origin in finding.evidence] == [NCCL]
    assert finding.evidence[0].line == 1


def test_rows_above_the_error_are_counted() -> None:
    run = replace(sweep(), errors=(NCCL,), failures=(Origin("out.log", 9, NCCL),), complete=False)
    assert "failed after 9 rows" in judge("BEN006", benchmark(run)).findings[0].message


def test_what_nccl_warned_of_comes_before_the_word_of_nccl_tests() -> None:
    warned = "n0:1:1 [0] NCCL WARN Cuda failure 'system not yet initialized'"
    outcome = judge("BEN006", benchmark(failed(warned, NCCL), "unknown"))
    expect(outcome, message="*system not yet initialized*", fix="*Fabric Manager*")


def test_a_finding_on_the_log_comes_before_any_line() -> None:
    report = Finding("NET008", Severity.ERROR, "retries exceeded on mlx5_0", "", "", ("look at its cable",))
    echo = Finding("JOB005", Severity.ERROR, "first error: n0", "", "", ())
    made = benchmark(failed(NCCL), "unknown", failures=(echo, report))
    finding = expect(judge("BEN006", made), message="*retries exceeded on mlx5_0 (NET008)*")
    assert finding.fix == ("look at its cable",)


@examples("text", "cause")
def test_the_words_of_cuda_nccl_and_launchers_are_read(text: str, cause: str) -> None:
    assert cause in judge("BEN006", benchmark(failed(*text.split("\n")), "unknown")).findings[0].message


def test_each_meaning_says_what_to_do() -> None:
    assert all(phrase.says and phrase.fix for phrase in phrases("failed_run"))


# --- BEN007: single iterations (nccl-tests' -I 1) or blocks of a size that take several times as long as the others
#


TABLE = """\
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 100 agg iters: 1
#                                                       out-of-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong   i_min   i_max   i_p99   i_cv%
     1048576        262144     float     sum      -1    35.10   29.87   29.87       0   34.00   390.0   380.0   99.0
"""


def jittering(ratio: float, sizes: int, iterations: str = "100", usual: str = "median") -> Benchmark:
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
    outcome = judge("BEN007", jittering(10.0, 2, usual=usual))
    expect(outcome, message=["*takes 10.0 times as long as usual*", "*at 2 of 7 sizes*"])


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


one_block = benchmark(replace(sweep(), rows=tuple(replace(row, in_place=Timing()) for row in sweep().rows)))


@pytest.mark.parametrize(
    ("made", "status"),
    [
        pytest.param(jittering(2.5, 5), Status.CLEAN, id="little"),
        pytest.param(jittering(10.0, 1), Status.CLEAN, id="one size"),
        pytest.param(jittering(10.0, 3, iterations="20"), Status.CLEAN, id="few iterations"),
        pytest.param(jittering(10.0, 5, iterations="20"), Status.FINDING, id="few iterations where most sizes show it"),
        pytest.param(jittering(10.0, 3, iterations=""), Status.CLEAN, id="unknown iterations"),
        pytest.param(blocks(2, times=2.5), Status.CLEAN, id="blocks that differ little"),
        pytest.param(blocks(1), Status.CLEAN, id="blocks of one size"),
        pytest.param(blocks(4), Status.CLEAN, id="blocks of half of the sizes"),
        pytest.param(one_block, Status.NOT_APPLICABLE, id="one block"),
        pytest.param(blocks(2, nranks=1), Status.NOT_APPLICABLE, id="one rank"),
    ],
)
def test_jitter_counts_where_it_is_large_at_several_sizes(made: Benchmark, status: Status) -> None:
    assert judge("BEN007", made).status is status


def test_the_table_and_the_json_hold_the_percentiles() -> None:
    (table,) = read_file(TABLE.encode(), "out.txt").runs
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
    (bench_run,) = read_file(json.dumps(data).encode(), "out.json").runs
    assert (bench_run.rows[0].out_of_place.p50_us, bench_run.rows[0].out_of_place.p99_us) == (34.0, 380.0)
