"""Tables of known incidents, by themselves and with the bundles beside them: the cause first, nothing false."""

from pathlib import Path

import pytest

from tests.tables import examples
from topodiag.app.bench import bench
from topodiag.model.bench import Benchmark
from topodiag.model.verdict import CauseStatus
from topodiag.verdict.headline import causes_of

INCIDENTS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus" / "incidents"

pytestmark = pytest.mark.skipif(not INCIDENTS.exists(), reason=f"no incidents at {INCIDENTS}")


def run_of(name: str) -> Benchmark:
    (benchmark,) = bench([str(INCIDENTS / name / "nccl-tests")]).benchmarks
    return benchmark


def test_one_hca_of_eight_is_the_cause_by_the_table_alone() -> None:
    benchmark = run_of("benchmark-over-one-nic")
    assert benchmark.severe
    assert benchmark.hypotheses[0].cause.startswith("NCCL_IB_HCA=mlx5_0 leaves 1 of 8 NICs")


@examples("name", "verdict")
def test_a_table_alone_is_not_called_low_where_another_machine_would_explain_it(name: str, verdict: str) -> None:
    assert run_of(name).verdict == verdict


@examples("name", "check")
def test_what_the_bundles_show_is_the_first_cause(name: str, check: str) -> None:
    result = bench([str(INCIDENTS / name / part) for part in ("nccl-tests", "bundles", "logs")])
    (benchmark,) = result.benchmarks
    (first, *_) = causes_of(benchmark, result)
    assert (first.finding.id, first.status) == (check, CauseStatus.ESTABLISHED)
    assert not benchmark.hypotheses
