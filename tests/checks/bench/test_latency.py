"""BEN002: the floor of small sizes against NCCL's latency; silent without small sizes or a model."""

from tests.checks.benches import Given, benchmark, judge, of_row, sweep
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.model.bench import Fit
from topodiag.model.finding import Status


@examples("given", "wanted")
def test_the_time_of_small_sizes(given: Given, wanted: Wanted) -> None:
    assert shown(judge("BEN002", of_row(given)), wanted) == wanted


def test_within_a_node_less_is_high() -> None:
    one = sweep(devices=sweep().devices[:8], nranks=8)
    assert judge("BEN002", benchmark(one, fit=Fit(latency_us=150.0))).status is Status.FINDING
    assert judge("BEN002", benchmark(one, fit=Fit(latency_us=66.0))).status is Status.CLEAN
