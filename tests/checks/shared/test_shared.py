"""What checks share: one beside the others, rows of tables, schedulers, reports, and names that NCCL reads (ENV003)."""

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.checks import jobs
from tests.checks.nodes import status
from tests.checks.wanted import Wanted, expect, shown
from tests.shown import ROOT
from tests.tables import examples
from topodiag.checks.env.node import UnknownSetting
from topodiag.checks.env.rules import rules
from topodiag.checks.registry import Subject, ids
from topodiag.checks.run import run
from topodiag.checks.shared import nccl_variables
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
from topodiag.model.node import Node, Setting
from topodiag.model.provenance import Origin, Topic


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
    tables, joined = ROOT / "topodiag/checks/shared/tables", ROOT / "topodiag/model/events.py"
    for path in (*map(tables.with_suffix, (".py", ".toml")), joined, *(ROOT / "topodiag" / "evidence").rglob("*.py")):
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


# --- ENV003: names that NCCL does not read, and the list of those that it does


def names(*pairs: str) -> Any:
    settings = tuple(Setting(*pair.split("=", 1), "environment", Origin("settings.tree", 1, pair)) for pair in pairs)
    return UnknownSetting().judge(Node("gpu-001", settings=settings, topics=frozenset({Topic.SETTINGS})), ())


@examples("wrong", "right")
def test_a_slip_is_a_warning_with_the_name_that_was_meant(wrong: str, right: str) -> None:
    finding = expect(names(f"{wrong}=1"), severity="WARNING")
    assert finding.message == f"{wrong} is not a variable of NCCL: misspelt {right}? (environment)"
    assert finding.fix == (f"write {right}=1",)
    assert finding.evidence[0].text == f"{wrong}=1"


@examples("name", "wanted")
def test_a_name_that_is_read_no_more_or_by_nobody_known(name: str, wanted: Wanted) -> None:
    assert shown(names(f"{name}=1"), wanted) == wanted


@examples("name")
def test_names_of_nccl_of_plug_ins_and_of_others_are_silent(name: str) -> None:
    assert status(names(f"{name}=1")) == "clean"


def test_the_rules_speak_of_names_that_nccl_reads() -> None:
    assert {rule.name for rule in rules("node") if rule.name.startswith("NCCL_")} <= nccl_variables.known()


RELEASE = re.compile(r"2\.\d{1,2}\.\d{1,2}")


def test_no_variable_lacks_its_first_release_its_default_or_its_meaning() -> None:
    for name in nccl_variables.known():
        held, old = nccl_variables.variable(name), nccl_variables.renamed(name)
        if held is None:
            assert old is not None, "PyTorch's, or of an NCCL before its source was public"
            continue
        assert RELEASE.fullmatch(held.since), name
        assert not held.until or RELEASE.fullmatch(held.until), name
        assert held.default, name
        assert 10 <= len(held.what) <= 120, name


def test_a_variable_that_is_read_no_more_is_told_by_its_last_release() -> None:
    held = nccl_variables.variable("NCCL_WORK_FIFO_DEPTH")
    assert (held.since, held.until) == ("2.13.4", "2.21.5")
    assert nccl_variables.variable("NCCL_ZEBRA") is None


@examples("name", "since", "default")
def test_releases_and_defaults_are_those_of_the_source(name: str, since: str, default: str) -> None:
    held = nccl_variables.variable(name)
    assert (held.since, held.until, held.default) == (since, "", default)


def test_what_replaces_an_old_name_is_a_name_in_force() -> None:
    for name in nccl_variables.known():
        old = nccl_variables.renamed(name)
        if old is not None and old.now.startswith("NCCL_"):
            replacement = old.now.partition("=")[0]
            assert replacement in nccl_variables.known()
            assert nccl_variables.renamed(replacement) is None
