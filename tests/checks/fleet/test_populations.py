"""FLT002: nodes of one kind fall into two populations."""

from dataclasses import replace

from topodiag.checks.fleet.populations import TwoPopulations
from topodiag.model.finding import Severity, Status
from topodiag.model.fleet import Association, Cohort, Population, Populations

OLD, NEW = tuple(f"n{at}" for at in range(8)), tuple(f"n{at}" for at in range(8, 20))
SPLIT = Populations(
    (("driver", "NVIDIA driver", ("",)), ("os", "kernel", ("",))),
    (Population(("570", "5.15"), NEW), Population(("550", "5.4"), OLD)),
    20,
)


def cohort(*splits: Populations) -> Cohort:
    return Cohort("DGX H100", (), OLD + NEW, compared=100, populations=splits)


def test_nodes_of_one_population_are_clean() -> None:
    assert TwoPopulations().judge(cohort()).status is Status.CLEAN


def test_under_three_nodes_nothing_can_be_said() -> None:
    assert TwoPopulations().judge(Cohort("x", (), ("n1", "n2"))).status is Status.UNKNOWN


def test_facts_that_split_alike_are_one_finding_of_the_smaller_population() -> None:
    [finding] = TwoPopulations().judge(cohort(SPLIT)).findings
    assert finding.message == "NVIDIA driver, kernel: populations of 12 and 8 nodes"
    assert finding.observed == "12 nodes: 570, 5.15; 8 nodes: 550, 5.4"
    assert (finding.where.nodes, finding.severity) == (OLD, Severity.INFO)


def test_what_else_splits_the_same_way_is_in_the_sentence() -> None:
    split = replace(SPLIT, association=Association("rack", ("r1", "r2"), 0.9))
    [finding] = TwoPopulations().judge(cohort(split)).findings
    assert finding.message.endswith(", split as by rack (r1, r2: 90 % overlap)")


def test_a_split_that_can_cost_bandwidth_is_a_warning() -> None:
    split = replace(SPLIT, facts=(("mtu", "MTU", ("mlx5_0/1",)),))
    [finding] = TwoPopulations().judge(cohort(split)).findings
    assert finding.severity is Severity.WARNING
