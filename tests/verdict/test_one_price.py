"""One price: a fault costs the same number in every view of it."""

import pytest

import topodiag
from tests.verdict.pricing.machines import SIZE, case, cause, node, run
from tests.verdict.test_price import LINKS
from topodiag.expect.expect import expected
from topodiag.expect.hypotheses import explain
from topodiag.expect.verdict import verdict_of
from topodiag.nccl.topo.changes import down
from topodiag.verdict.price import priced

FIXTURE = "fixture:dgx-h100-gpu3-12of18-nvlink"


def test_a_scan_and_a_diagnosis_print_the_same_number() -> None:
    (scanned,) = [finding for finding in topodiag.scan(FIXTURE).findings if finding.id == "NVL001"]
    result = topodiag.diagnose(FIXTURE).result
    (priced_cause,) = [finding for finding in result.verdict.causes if finding.finding.id == "NVL001"]
    assert [finding.cost for finding in result.findings if finding.id == "NVL001"] == [scanned.cost]
    assert (priced_cause.price.gbs_lost, priced_cause.price.share) == (scanned.cost.gbs_lost, scanned.cost.share)


@pytest.mark.parametrize("job", ["nic-missing", "slow-topology-file", "socket-fallback", "split-tensor-groups"])
def test_the_logs_and_a_diagnosis_print_the_same_number(job: str) -> None:
    logged = {(finding.id, finding.message): finding.cost for finding in topodiag.logs(f"fixture:{job}").findings}
    result = topodiag.diagnose(f"fixture:{job}").result
    assert logged.items() <= {(finding.id, finding.message): finding.cost for finding in result.findings}.items()
    for finding in result.verdict.causes:
        findings = (finding.finding, *(consequence.finding for consequence in finding.consequences))
        costs = [logged[finding.id, finding.message] for finding in findings if (finding.id, finding.message) in logged]
        numbers = [(cost.gbs_lost, cost.share) for cost in costs if cost.gbs_lost is not None]
        if numbers:
            assert (finding.price.gbs_lost, finding.price.share) == numbers[0]


def test_a_benchmark_and_a_diagnosis_predict_the_same_bandwidth() -> None:
    """Both take the share from NCCL's own figures of the two machines, and the whole from the expectation."""
    links = "6 of 18 NVLinks of one GPU down"
    measured = run("n1", "n2", gbs=290.0)
    estimate = expected(measured, node("n1"))
    explained = explain(measured, estimate, verdict_of(measured, estimate.expectation))
    (bench,) = [hypothesis.predicted_gbs for hypothesis in explained.causes if hypothesis.cause == links]
    (price,) = priced([cause(LINKS)], case(down("nvlink:GPU3:6"), gbs=290.0))
    assert abs(price.predicted.value - bench) < 1e-6
    assert price.all_gone.value == estimate.expectation.busbw[SIZE]
