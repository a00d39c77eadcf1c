"""Checks are run over nodes, folded and sorted."""

from topodiag.checks import registry
from topodiag.checks.interface import NodeCheck
from topodiag.checks.run import fold, run_checks
from topodiag.model.finding import Cost, Finding, Outcome, Severity, Status, Where
from topodiag.model.node import Node


def finding(check: str, severity: Severity, node: str, lost: float | None = None, gpu: str = "GPU3") -> Finding:
    where = Where(nodes=(node,), gpus=(gpu,))
    return Finding(check, severity, f"{check} of {gpu}", "4", "16", ("mend it",), where, Cost(lost))


def outcome(*findings: Finding) -> Outcome:
    return Outcome(findings[0].id, Status.FINDING, findings[0].where.nodes[0], findings)


def test_every_check_answers_once_per_node_in_the_order_of_the_catalogue() -> None:
    outcomes = run_checks([Node("a"), Node("b")])
    of_nodes = [
        check for check in registry.ids() if any(issubclass(c, NodeCheck) for c in registry.check_classes(check))
    ]
    assert [each.check for each in outcomes] == [check for check in of_nodes for _ in "ab"]
    assert [each.node for each in outcomes[:2]] == ["a", "b"]


def test_a_node_of_which_nothing_is_known_has_no_findings_and_is_never_clean() -> None:
    outcomes = run_checks([Node("a")])
    assert {each.status for each in outcomes} <= {Status.UNKNOWN, Status.NOT_APPLICABLE}
    assert all(each.why for each in outcomes)


def test_equal_findings_of_many_nodes_are_one() -> None:
    outcomes = [outcome(finding("PCI001", Severity.ERROR, f"n{number}")) for number in range(10)]
    [folded] = fold(outcomes)
    assert folded.where.nodes == tuple(f"n{number}" for number in range(10))


def test_findings_of_different_places_stay_apart() -> None:
    one, other = (finding("PCI001", Severity.ERROR, "n0", gpu=gpu) for gpu in ("GPU1", "GPU2"))
    assert len(fold([outcome(one), outcome(other)])) == 2


def test_the_worst_comes_first_then_the_dearest() -> None:
    made = fold(
        [
            outcome(finding("ENV003", Severity.INFO, "n")),
            outcome(finding("NIC002", Severity.ERROR, "n", 25.0)),
            outcome(finding("NUM001", Severity.WARNING, "n")),
            outcome(finding("NVL001", Severity.ERROR, "n", 123.6)),
        ]
    )
    assert [each.id for each in made] == ["NVL001", "NIC002", "NUM001", "ENV003"]
