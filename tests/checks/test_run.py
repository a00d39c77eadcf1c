"""Checks are run over nodes, folded and sorted."""

import pytest

from topodiag.checks import registry
from topodiag.checks.interface import JobCheck, NodeCheck
from topodiag.checks.run import fold, run_checks, run_job_checks
from topodiag.model.connections import no_connections
from topodiag.model.finding import Cost, Finding, Outcome, Severity, Status, Where
from topodiag.model.job import Job
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


class Always(JobCheck):
    id, title = "JOB999", "always"

    def judge(self, job: Job) -> Outcome:
        return self.found(job, [self.finding(Severity.INFO, "it", observed="", expected="", fix=("mend it",))])


def test_findings_name_their_job_where_there_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ids", lambda: ("JOB999",))
    monkeypatch.setattr(registry, "job_classes", lambda _: (Always,))
    jobs = [Job(name, 0, (), (), (), no_connections(), ()) for name in ("job 1", "job 2")]
    [alone] = fold(run_job_checks(jobs[:1]))
    assert alone.where.jobs == ()
    [both] = fold(run_job_checks(jobs))
    assert both.where.jobs == ("job 1", "job 2")
