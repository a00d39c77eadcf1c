"""What others report of a node: a finding of the check that answers for the event, never above what it found itself."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.shown import ROOT
from tests.tables import examples
from topodiag.api import diagnose
from topodiag.checks.registry import Subject, ids
from topodiag.checks.run import run
from topodiag.checks.shared.reports import Report, answered_by, with_reports
from topodiag.evidence.signatures.entry import catalogue
from topodiag.model.devices import Gpu
from topodiag.model.events import OUT_OF_SERVICE, REMARK, Event, Trust
from topodiag.model.finding import Confidence, Outcome, Severity, Status
from topodiag.model.node import Node
from topodiag.model.provenance import Origin

HEADER = "REASON               USER      TIMESTAMP           NODELIST\n"
REPORT = Report("gpu.lost", "a GPU is lost", "GPUs that all answer", "nvidia-smi -L")
EVENT = Event("gpu.lost", "gpu.sample", "GPU 3 fell off the bus", Origin("a.txt", 1), trust=Trust.AGENT)


def node(*events: Event, gpus: tuple[Gpu, ...] = ()) -> Node:
    return Node("n1", reports=events, gpus=gpus)


def answer(status: Status, *events: Event, report: Report = REPORT, gpus: tuple[Gpu, ...] = ()) -> Outcome:
    return with_reports(Outcome("GPU001", status, "n1"), node(*events, gpus=gpus), (report,))


def said(tmp_path: Path, text: str) -> dict[str, list[dict[str, Any]]]:
    file = tmp_path / "said.txt"
    file.write_text(text)
    document: dict[str, list[dict[str, Any]]] = json.loads(diagnose(str(file)).to_json())
    return document


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
    [finding] = answer(Status.UNKNOWN, EVENT, replace(EVENT, host="n7")).findings
    assert finding.where.nodes == ("n7",)


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


@examples("reason", "check")
def test_a_drained_node_has_the_fault_that_its_reason_names(tmp_path: Path, reason: str, check: str) -> None:
    text = f"NodeName=n1 Arch=x86_64\n   State=IDLE+DRAIN\n   Reason={reason} [root@2024-05-06T08:11:01]\n"
    [finding] = said(tmp_path, text)["findings"]
    assert (finding["id"], finding["severity"], finding["confidence"]) == (check, "error", "medium")
    assert reason in finding["message"]


def test_a_reason_without_a_part_is_listed_and_makes_no_finding(tmp_path: Path) -> None:
    table = said(tmp_path, f"{HEADER}Kill task failed     root      2024-05-05T01:11:01 n3\n")
    assert table["findings"] == []
    assert [line["text"] for line in table["unexplained"]] == ["n3 is out of service: Kill task failed"]


def test_maintenance_is_no_fault(tmp_path: Path) -> None:
    table = said(tmp_path, f"{HEADER}maintenance          root      2024-05-05T01:11:01 n3\n")
    assert (table["findings"], table["unexplained"]) == ([], [])


def test_devices_that_cannot_be_opened_are_told_beside_those_that_can(tmp_path: Path) -> None:
    device = "hca_id: mlx5_0\n        transport:                      InfiniBand (0)\n        phys_port_cnt:  1\n"
    assert [finding["id"] for finding in said(tmp_path, f"Failed to open device\n{device}")["findings"]] == ["HST002"]
    assert said(tmp_path, device)["findings"] == []


def test_faults_of_two_nodes_in_one_table_are_of_these_nodes(tmp_path: Path) -> None:
    rows = (
        "Xid 79 on GPU 2      root      2024-05-05T01:11:01 n3\n"
        "NHC: check_hw_ib:  N root      2024-05-05T01:11:01 n[4-5]\n"
    )
    findings = said(tmp_path, HEADER + rows)["findings"]
    assert [(record["id"], record["where"]["nodes"]) for record in findings] == [
        ("GPU001", ["n3"]),
        ("NIC001", ["n[4-5]"]),
    ]
