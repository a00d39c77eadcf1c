"""What checks share: one of several alike beside the others, rows of tables, schedulers, and what others report."""

import re
from dataclasses import replace

import pytest

from tests.checks import jobs
from tests.checks.wanted import expect
from tests.shown import ROOT
from tests.tables import examples
from topodiag.checks.registry import Subject, ids
from topodiag.checks.run import run
from topodiag.checks.shared.comparisons import far, majority, unlike
from topodiag.checks.shared.job.schedulers import commands_of, scheduler_of
from topodiag.checks.shared.reports import Report, answered_by, with_reports
from topodiag.checks.shared.tables import reported_by_tables
from topodiag.evidence.interface import Blob
from topodiag.evidence.signatures.entry import catalogue
from topodiag.evidence.table import tables_of
from topodiag.model.devices import Gpu
from topodiag.model.events import OUT_OF_SERVICE, REMARK, Event, Trust
from topodiag.model.finding import Confidence, Outcome, Severity, Status
from topodiag.model.node import Node
from topodiag.model.provenance import Origin


@examples("values", "odd")
def test_the_odd_ones_are_those_that_most_do_not_agree_with(
    values: dict[str, int], odd: tuple[str, ...] | None
) -> None:
    outliers = unlike(values)
    assert (outliers.outliers if outliers is not None else None) == odd


@examples("values", "factor", "floor", "odd")
def test_far_is_a_factor_and_a_floor_from_the_median(
    values: list[float], factor: float, floor: float, odd: tuple[int, ...] | None
) -> None:
    outlier = far(dict(enumerate(values)), factor=factor, floor=floor)
    assert (outlier.outliers if outlier is not None else None) == odd


def test_where_the_rest_do_not_agree_nobody_is_far() -> None:
    values = {"a": 10.0, "b": 10.0, "c": 16.0, "d": 40.0, "e": 10.0}
    assert far(values, factor=2.0) is not None
    assert far(values, factor=2.0, close=1.3) is None


def test_a_majority_is_more_than_half() -> None:
    assert (majority("aab"), majority("aabb"), majority("")) == ("a", None, None)


# --- what a table of any script shows: the row that is not as its siblings, or not as the table says it should be


def faults(text: str) -> list[str]:
    node = Node("a node", tables=tuple(tables_of(Blob("out.txt", text.encode()))))
    return [event.kind for event in reported_by_tables(node)]


@examples("text", "bad", "well", "fault")
def test_the_row_that_stands_apart_is_told(text: str, bad: str, well: str, fault: str) -> None:
    assert faults(text.format(bad)) == [fault]
    assert faults(text.format(well)) == []


@examples("text")
def test_what_is_alike_or_of_nothing_known_is_not_told(text: str) -> None:
    assert faults(text) == []


# --- the scheduler that a job's evidence shows, and commands in its words


COMMANDS = ("sacct -j JOB --format=JobID,State", "kubectl describe pod POD", "dmesg -T")


@pytest.mark.parametrize(
    ("texts", "commands"),
    [
        pytest.param(("TERM_RUNLIMIT: job killed",), ("bhist -l JOB", "dmesg -T"), id="LSF"),
        pytest.param(("   Exit Status:        271 (Linux Signal 15)",), ("qstat -xf JOB", "dmesg -T"), id="PBS"),
        pytest.param(("\t(0) Abnormal termination (signal 9)",), ("condor_history -l JOB", "dmesg -T"), id="HTCondor"),
        pytest.param(("Reason: OOMKilled",), ("kubectl describe pod POD", "dmesg -T"), id="Kubernetes"),
        pytest.param(("srun: error: n0: task 0: Killed",), (COMMANDS[0], "dmesg -T"), id="Slurm"),
        pytest.param(("Killed",), COMMANDS, id="none"),
        pytest.param(("srun: error: n0: task 0: Killed", "Reason: OOMKilled"), COMMANDS, id="two"),
    ],
)
def test_commands_are_those_of_the_one_scheduler_that_shows_itself(
    texts: tuple[str, ...], commands: tuple[str, ...]
) -> None:
    job = jobs.job(1, events=[jobs.event("ended", text, "") for text in texts])
    assert commands_of(scheduler_of(job), COMMANDS) == commands


# --- What others report of a node: a finding of the check that answers for the event, never above what it found itself
#


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
