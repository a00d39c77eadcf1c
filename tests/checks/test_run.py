"""Checks are run over nodes, folded and sorted, with the peers of each, in the words of the machine."""

import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.checks.wanted import expect
from topodiag.checks import registry
from topodiag.checks.interface import Advice, JobCheck, NodeCheck
from topodiag.checks.peers import of_everyone, peers_of
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.checks.spoken import spoken
from topodiag.model.connections import no_connections
from topodiag.model.finding import Cost, Finding, Outcome, Severity, Status, Where
from topodiag.model.job import Job
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.words.dialect import AMD, NVIDIA
from topodiag.words.own_data import own_data


def finding(check: str, severity: Severity, node: str, lost: float | None = None, gpu: str = "GPU3") -> Finding:
    where = Where(nodes=(node,), gpus=(gpu,))
    return Finding(check, severity, f"{check} of {gpu}", "4", "16", ("mend it",), where, Cost(lost))


def outcome(*findings: Finding) -> Outcome:
    return Outcome(findings[0].id, Status.FINDING, findings[0].where.nodes[0], findings)


def test_every_check_answers_once_per_node_in_the_order_of_the_catalogue() -> None:
    outcomes = run(Subject.NODE, [Node("a"), Node("b")])
    of_nodes = [
        check for check in registry.ids() if any(issubclass(c, NodeCheck) for c in registry.check_classes(check))
    ]
    assert [answer.check for answer in outcomes] == [check for check in of_nodes for _ in "ab"]
    assert [answer.node for answer in outcomes[:2]] == ["a", "b"]


def test_a_node_of_which_nothing_is_known_has_no_findings_and_is_never_clean() -> None:
    outcomes = run(Subject.NODE, [Node("a")])
    assert {answer.status for answer in outcomes} <= {Status.UNKNOWN, Status.NOT_APPLICABLE}
    assert all(answer.why for answer in outcomes)


def test_equal_findings_of_many_nodes_are_one() -> None:
    outcomes = [outcome(finding("PCI001", Severity.ERROR, f"n{number}")) for number in range(10)]
    [folded] = fold(outcomes)
    assert folded.where.nodes == tuple(f"n{number}" for number in range(10))


def test_findings_of_different_places_stay_apart() -> None:
    one, other = (finding("PCI001", Severity.ERROR, "n0", gpu=gpu) for gpu in ("GPU1", "GPU2"))
    assert len(fold([outcome(one), outcome(other)])) == 2


def test_the_worst_comes_first_then_the_dearest() -> None:
    findings = fold(
        [
            outcome(finding("ENV003", Severity.INFO, "n")),
            outcome(finding("NIC002", Severity.ERROR, "n", 25.0)),
            outcome(finding("NUM001", Severity.WARNING, "n")),
            outcome(finding("NVL001", Severity.ERROR, "n", 123.6)),
        ]
    )
    assert [report.id for report in findings] == ["NVL001", "NIC002", "NUM001", "ENV003"]


class Always(JobCheck, id="JOB999"):
    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        finding = self.finding(self.where(), Advice(Severity.INFO), "it", observed="", expected="", fix=("mend it",))
        return self.any_of(judged, [finding])


class Broken(JobCheck, id="JOB998"):
    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        if not judged.ranks:
            raise ZeroDivisionError
        return self.clean(judged, "nothing to see")


def test_findings_name_their_job_where_there_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topodiag.checks.run.ids_of", lambda *_: ("JOB999",))
    monkeypatch.setattr("topodiag.checks.run.has_check", lambda *_: True)
    monkeypatch.setattr("topodiag.checks.run.check_of", lambda *_: Always)
    jobs = [Job(name, 0, (), (), (), no_connections(), ()) for name in ("job 1", "job 2")]
    [report] = fold(run(Subject.JOB, jobs[:1]))
    assert report.where.jobs == ()
    [both] = fold(run(Subject.JOB, jobs))
    assert both.where.jobs == ("job 1", "job 2")


def test_a_check_that_fails_costs_its_own_verdict_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topodiag.checks.run.ids_of", lambda *_: ("JOB998", "JOB999"))
    monkeypatch.setattr("topodiag.checks.run.has_check", lambda *_: True)
    monkeypatch.setattr("topodiag.checks.run.check_of", lambda _, check: Always if check == "JOB999" else Broken)
    failed, answer = run(Subject.JOB, [Job("job", 0, (), (), (), no_connections(), ())])
    assert (failed.status, failed.node) == (Status.UNKNOWN, "job")
    assert failed.why.startswith("the check failed: ZeroDivisionError")
    assert answer.status is Status.FINDING


def test_only_the_ids_asked_for_are_run() -> None:
    assert {answer.check for answer in run(Subject.NODE, [Node("a")], ("NVL001", "TOP001"))} == {"NVL001", "TOP001"}


def test_the_catalogue_has_each_id_once_and_its_families_in_order() -> None:
    ids = registry.ids()
    assert len(set(ids)) == len(ids)
    families = list(dict.fromkeys(check_id[:3] for check_id in ids))
    assert families == [family for family in registry.FAMILIES if family in families]


def test_the_catalogue_names_folders_and_subjects_that_there_are() -> None:
    checks = own_data("checks/catalogue")["checks"]
    assert {check_id[:3] for check_id in checks} == set(registry.FAMILIES) == set(registry.FOLDERS)
    assert {subject for classes in checks.values() for subject in classes} == {subject.value for subject in Subject}


def modules_of(*subjects: Subject) -> set[str]:
    """The modules of the checks of these subjects."""
    return {
        registry.check_of(subject, check_id).__module__ for subject in subjects for check_id in registry.ids_of(subject)
    }


def test_a_scan_loads_no_check_of_jobs_and_nothing_that_only_they_need() -> None:
    program = (
        "import sys\n"
        "from topodiag.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *sys.modules)\n"
    )
    argv = [sys.executable, "-c", program, "scan", "fixture:dgx-h100-gpu3-12of18-nvlink"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    loaded = set(done.stdout.splitlines()[-1].split())
    others = modules_of(Subject.JOB, Subject.LAYOUT, Subject.BENCH) - modules_of(Subject.NODE, Subject.TOPO)
    assert loaded & (others | {"numpy", "pyarrow", "pandas"}) == set(), done.stderr
    assert "topodiag.checks.nvlink.links" in loaded
    assert "NVL001" in done.stdout


# --- the peers of a judged one: all others, and what is so with everyone is asked once


def test_peers_are_all_others_in_their_order() -> None:
    peers = peers_of(["a", "b", "a"])
    assert [list(peer) for peer in peers] == [["b", "a"], ["a", "a"], ["a", "b"]]
    assert [len(peer) for peer in peers] == [2, 2, 2]
    assert (peers[1][-1], list(peers[2][:1])) == ("a", ["a"])


def test_what_is_so_with_everyone_is_asked_once_for_the_whole_run() -> None:
    asked = []

    def total(numbers: Sequence[int]) -> int:
        asked.append(tuple(numbers))
        return sum(numbers)

    everyone = [1, 2, 3]
    assert [of_everyone(*pair, total) for pair in zip(everyone, peers_of(everyone), strict=True)] == [6, 6, 6]
    assert asked == [(1, 2, 3)]


def test_of_a_plain_list_the_judged_one_is_counted_in() -> None:
    assert of_everyone(1, [2, 3], sum) == 6


def outcome_of(check: str, observed: str, *quotes: str) -> Outcome:
    finding = Finding(
        check,
        Severity.WARNING,
        "GPU3 has 17 of 18 NVLinks",
        observed,
        "18 NVLinks",
        ("`nvidia-smi nvlink -s`", "systemctl status nvidia-fabricmanager"),
        evidence=tuple(Origin("log", 1, text) for text in quotes),
    )
    return Outcome(check, Status.FINDING, "n", (finding,))


def test_a_finding_on_amd_names_links_and_commands_of_amd() -> None:
    (finding,) = spoken(outcome_of("NVL001", "17 NVLinks"), AMD).findings
    assert finding.message == "GPU3 has 17 of 18 xGMI links"
    assert finding.observed == "17 xGMI links"
    assert finding.fix == ("`amd-smi xgmi`",)


def test_what_a_finding_quotes_stays_as_it_stands() -> None:
    quote = "NCCL WARN NVLink down"
    finding = expect(spoken(outcome_of("NVL001", "NVLink down", quote), AMD), observed="NVLink down")
    assert finding.evidence[0].text == quote


def test_a_check_of_what_amd_does_not_build_does_not_apply() -> None:
    answer = spoken(outcome_of("NVL005", "x"), AMD)
    assert answer.status is Status.NOT_APPLICABLE
    assert answer.findings == ()
    assert spoken(outcome_of("NVL005", "x"), NVIDIA).status is Status.FINDING
