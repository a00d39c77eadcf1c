"""FLT001: a node differs from its siblings in a fact that can cost bandwidth or stability."""

from dataclasses import replace

import pytest

from tests.tables import examples
from topodiag.checks.fleet.differs import DiffersFromSiblings
from topodiag.checks.fleet.weights import matters, weigh
from topodiag.model.finding import Confidence, Finding, Severity, Status
from topodiag.model.fleet import Cohort, How, Outlier
from topodiag.model.fleet_words import spelled

HOSTS = tuple(f"n{at}" for at in range(20))


def outlier(family: str = "driver", key: str = "NVIDIA driver", **more: object) -> Outlier:
    made = Outlier(family, key, ("",), "550", "570", ("n3",), 19, 20, source="nvml.json:1")
    return replace(made, **more)  # type: ignore[arg-type]


def cohort(*outliers: Outlier, nodes: tuple[str, ...] = HOSTS) -> Cohort:
    return Cohort("DGX H100", (), nodes, compared=100, outliers=outliers)


def findings(*outliers: Outlier) -> tuple[Finding, ...]:
    return DiffersFromSiblings().judge(cohort(*outliers)).findings


def test_nodes_without_a_difference_are_clean() -> None:
    outcome = DiffersFromSiblings().judge(cohort())
    assert (outcome.status, outcome.why) == (Status.CLEAN, "100 facts compared on 20 nodes")


def test_under_three_nodes_nothing_can_be_said() -> None:
    outcome = DiffersFromSiblings().judge(cohort(nodes=("n1", "n2")))
    assert (outcome.status, outcome.why) == (Status.UNKNOWN, "2 nodes of this kind: there is no majority")


def test_the_finding_names_the_value_the_majority_and_the_evidence() -> None:
    [finding] = findings(outlier())
    assert finding.message == "NVIDIA driver: 550 (19 of 20: 570)"
    assert (finding.where.nodes, finding.severity) == (("n3",), Severity.WARNING)
    assert [origin.source for origin in finding.evidence] == ["nvml.json:1"]


def test_all_that_differs_on_the_same_nodes_is_one_finding_with_the_weightiest_first() -> None:
    [finding] = findings(outlier("os", "distribution"), outlier(), outlier("nvlink", "links", parts=("gpu3",)))
    assert finding.message.startswith("NVLink links of gpu3: 550")
    assert finding.message.endswith(", and 2 more facts")
    assert finding.where.gpus == ("GPU3",)


def test_what_the_nodes_own_check_has_told_is_not_told_again() -> None:
    assert DiffersFromSiblings().judge(cohort(outlier(explained_by="NVL001"))).status is Status.CLEAN


@examples("family", "key", "severity")
def test_severity_is_by_whether_it_can_cost_bandwidth_or_stability(family: str, key: str, severity: Severity) -> None:
    assert weigh(outlier(family, key)).severity is severity


def test_two_against_one_is_a_hint_that_excludes_nobody() -> None:
    few = outlier(usual_count=2, total=3)
    [finding] = DiffersFromSiblings().judge(cohort(few, nodes=("n1", "n2", "n3"))).findings
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.LOW)
    assert not matters(few)


def test_a_bandwidth_that_differs_is_its_price() -> None:
    [finding] = findings(outlier("pairing", "widest path to a network card", unit="GB/s", gbs_lost=24.0))
    assert finding.cost.gbs_lost == 24.0


def test_parts_in_another_order_are_told_so() -> None:
    swapped = outlier(
        "pairing", "nearest network cards", parts=("gpu0", "gpu3"), how=How.PERMUTED,
        value="gpu0 mlx5_3; gpu3 mlx5_0", usual="gpu0 mlx5_0; gpu3 mlx5_3",
    )  # fmt: skip
    [finding] = findings(swapped)
    assert finding.message == "nearest network cards of gpu0,3 in another order: gpu0 mlx5_3; gpu3 mlx5_0"
    assert finding.expected == "the order of 19 of 20 nodes: gpu0 mlx5_0; gpu3 mlx5_3"


def test_corrected_errors_that_rise_faster_are_a_note() -> None:
    assert weigh(outlier("gpu", "ecc_volatile_corrected", how=How.RATE)).severity is Severity.INFO
    assert weigh(outlier("nic", "symbol_error", how=How.RATE)).severity is Severity.WARNING


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [("270456016896", "bytes", "251.9 GiB"), ("unlimited", "bytes", "unlimited"), ("9" * 400, "bytes", "9" * 400),
     ("16", "GT/s", "16 GT/s"), ("3", "errors", "3")],
)  # fmt: skip
def test_a_value_is_spelt_with_its_unit(value: str, unit: str, words: str) -> None:
    assert spelled(value, unit) == words
