"""BEN001: low with the likeliest cause; silent where there is too little to judge by."""

from dataclasses import replace

from tests.checks.benches import GROWING, Given, benchmark, judge, of_row, sweep
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.model.bench import Hypothesis
from topodiag.model.finding import Severity, Status

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


def test_a_cause_is_likely_where_the_evidence_shows_it() -> None:
    shown_nic = replace(NIC, shown=True)
    assert (
        "likely cause: 1 of 8 NICs not used"
        in judge("BEN001", benchmark(LOW, "low", hypotheses=(shown_nic,))).findings[0].message
    )


@examples("given", "wanted")
def test_bandwidths_below_what_is_expected(given: Given, wanted: Wanted) -> None:
    assert shown(judge("BEN001", of_row(given)), wanted) == wanted


def test_an_unlikely_cause_is_not_named_in_the_message() -> None:
    unsure = Hypothesis("1 of 8 NICs not used", 340.0, 0.2, (), ("look",), "NET003")
    finding = judge("BEN001", benchmark(LOW, "low", hypotheses=(unsure,))).findings[0]
    assert "NICs not used" not in finding.message
    assert "NICs not used" in finding.fix[0]
