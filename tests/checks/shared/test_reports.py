"""What others report of a node: a finding of the check that answers for the event, never above what it found itself."""

import re
from dataclasses import replace

from tests.checks.wanted import expect
from tests.shown import ROOT
from tests.tables import examples
from topodiag.checks.registry import Subject, ids
from topodiag.checks.run import run
from topodiag.checks.shared.reports import Report, answered_by, with_reports
from topodiag.evidence.signatures.entry import catalogue
from topodiag.model.devices import Gpu
from topodiag.model.events import OUT_OF_SERVICE, REMARK, Event, Trust
from topodiag.model.finding import Confidence, Outcome, Severity, Status
from topodiag.model.node import Node
from topodiag.model.provenance import Origin

REPORT = Report("gpu.lost", "a GPU is lost", "GPUs that all answer", "nvidia-smi -L")
EVENT = Event("gpu.lost", "gpu.sample", "GPU 3 fell off the bus", Origin("a.txt", 1), trust=Trust.AGENT)


def node(*events: Event, gpus: tuple[Gpu, ...] = ()) -> Node:
    return Node("n1", reports=events, gpus=gpus)


def answer(status: Status, *events: Event, report: Report = REPORT, gpus: tuple[Gpu, ...] = ()) -> Outcome:
    return with_reports(Outcome("GPU001", status, "n1"), node(*events, gpus=gpus), (report,))


def test_an_event_that_a_check_answers_for_is_said_by_an_entry_or_a_reader_and_by_one_check() -> None:
    kinds = {entry.says for entry in catalogue()}
    tables, joined = ROOT / "topodiag/checks/shared/tables.py", ROOT / "topodiag/model/events.py"
    for path in (tables, joined, *(ROOT / "topodiag" / "evidence").rglob("*.py")):
        kinds.update(re.findall(r'"([a-z]+\.[a-z_]+)"', path.read_text()))
    answered = [report.event for check_id in ids() for report in answered_by(check_id)]
    assert sorted(set(answered)) == sorted(answered)
    assert set(answered) - kinds == set()


def test_an_entry_of_the_node_has_a_check_that_answers_for_it() -> None:
    answered = {report.event for check_id in ids() for report in answered_by(check_id)}
    families = {"gpu", "nvlink", "nic", "rdma", "fabric", "network", "gpudirect"}
    says = {entry.says for entry in catalogue() if entry.id.partition(".")[0] in families}
    assert says - answered - {OUT_OF_SERVICE, REMARK} == set()


@examples("trust", "status", "severity", "confidence")
def test_who_speaks_decides_how_much_it_counts(
    trust: Trust, status: Status, severity: Severity | None, confidence: Confidence | None
) -> None:
    findings = answer(status, replace(EVENT, trust=trust)).findings
    pairs = [(finding.severity, finding.confidence) for finding in findings]
    assert pairs == ([(severity, confidence)] if severity is not None else [])


def test_a_line_that_two_readers_take_is_one_finding_of_the_host_that_one_of_them_names() -> None:
    expect(answer(Status.UNKNOWN, EVENT, replace(EVENT, host="n7")), nodes=("n7",))


def test_a_part_that_a_node_may_do_without_is_told_only_where_the_check_applies() -> None:
    optional = replace(REPORT, optional=True)
    gpus = (Gpu("GPU0", "0000:01:00.0"),)
    assert answer(Status.NOT_APPLICABLE, EVENT, report=optional, gpus=gpus).findings == ()
    assert answer(Status.NOT_APPLICABLE, EVENT, report=optional).findings
    assert answer(Status.UNKNOWN, EVENT, report=optional, gpus=gpus).findings


def test_a_check_of_jobs_answers_for_what_a_text_without_a_job_reports() -> None:
    event = replace(EVENT, kind="network.unreachable", text="Ncat: No route to host.", trust=Trust.PERSON)
    outcomes = [outcome for outcome in run(Subject.NODE, (node(event),)) if outcome.status is Status.FINDING]
    assert [(outcome.check, outcome.node) for outcome in outcomes] == [("NET002", "n1")]
    assert all(outcome.check != "NET002" for outcome in run(Subject.NODE, (node(event),), only=("GPU001",)))
