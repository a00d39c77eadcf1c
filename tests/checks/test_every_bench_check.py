"""What holds for every check of benchmarks: no run makes it raise, and a finding is complete."""

from hypothesis import given
from hypothesis import strategies as st

from topodiag.checks import registry
from topodiag.checks.interface import BenchCheck
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.model.bench import BenchDevice, Benchmark, BenchRow, BenchRun, Expectation, Fit, Hypothesis, Timing
from topodiag.model.finding import Confidence, Status

CHECKS = [cls for id_name in registry.ids() for cls in registry.check_classes(id_name) if issubclass(cls, BenchCheck)]

numbers = st.one_of(st.none(), st.sampled_from([0.0, -1.0, 1e-9, 1e300]), st.floats(0, 1000))
sizes = st.one_of(st.integers(-1, 1 << 70), st.sampled_from([8, 1 << 20, 1 << 24, 1 << 28, 1 << 30, 1 << 33]))
timings = st.builds(Timing, numbers, numbers, numbers, numbers)
rows = st.builds(BenchRow, sizes, out_of_place=timings, in_place=timings, cut=st.booleans())
runs = st.builds(
    BenchRun,
    st.sampled_from(["all_reduce", ""]),
    st.lists(rows, max_size=9).map(tuple),
    st.lists(st.builds(BenchDevice, st.integers(0, 3), st.sampled_from(["a", "b"]), st.just(0)), max_size=4).map(tuple),
    st.one_of(st.none(), st.integers(-1, 4)),
    parameters=st.dictionaries(st.sampled_from(["graph", "aggIters", "validation"]), st.sampled_from(["0", "1", "x"])),
    out_of_bounds=st.one_of(st.none(), st.integers(0, 3)),
    placement=st.sampled_from(["", "a", "b"]),
)
expectations = st.builds(
    Expectation,
    st.just("a machine"),
    st.floats(1, 900),
    st.floats(1, 900),
    st.floats(1, 900),
    st.sampled_from(Confidence),
    busbw=st.dictionaries(sizes, st.floats(0.001, 900), max_size=3),
    latency_us=numbers,
    terms=st.just((("NCCL runs", "Ring/Simple", "from 16777216 B"), ("NCCL runs", "", "odd"))),
)
benchmarks = st.builds(
    Benchmark,
    runs,
    st.builds(Fit, latency_us=numbers),
    st.one_of(st.none(), expectations),
    st.sampled_from(["normal", "low", "impossible", "unknown", ""]),
    hypotheses=st.sampled_from([(), (Hypothesis("a cause", 1.0, 0.9),)]),
)


def test_there_are_eight() -> None:
    shown = sorted(check.id for check in CHECKS)
    assert shown == ["BEN001", "BEN002", "BEN003", "BEN004", "BEN005", "BEN006", "BEN007", "ENV001"]


@given(st.lists(benchmarks, max_size=3))
def test_no_benchmark_makes_a_check_fail_and_findings_are_complete(made: list[Benchmark]) -> None:
    outcomes = run(Subject.BENCH, made)
    assert len(outcomes) == len(CHECKS) * len(made)
    for outcome in outcomes:
        assert not outcome.why.startswith("the check failed"), outcome.why
        assert outcome.findings if outcome.status is Status.FINDING else outcome.why
    for finding in fold(outcomes):
        assert finding.message
        assert finding.observed
        assert finding.expected
        assert finding.fix
        assert finding.cost.share is None or 0 <= finding.cost.share <= 1
