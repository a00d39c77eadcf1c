"""BEN005: placements of one collective that are more than 30 % apart; anything that differs else is no placement."""

from dataclasses import replace
from itertools import combinations

from tests.checks.benches import GROWING, Given, benchmark, judge, of_row, sweep
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.model.bench import Benchmark, BenchRun
from topodiag.model.finding import Status


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
