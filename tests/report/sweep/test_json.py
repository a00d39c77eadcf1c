"""The document of `bench read` is of the published schema, and what it accuses stands among the findings."""

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

from tests.report.sweep.test_page import SWEEP
from tests.valid import assert_valid
from topodiag.model.sweep import SweepJudgement
from topodiag.report.documents.write_json import plain
from topodiag.report.sweep.page import sweep_json
from topodiag.sweep.findings import sweep_findings

SCHEMA = json.loads((files("topodiag.report") / "schema" / "sweep-1.0.schema.json").read_text())


def made(judged: SweepJudgement) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(plain(sweep_json(judged, SWEEP.plans, None)), allow_nan=False))
    assert_valid(document, SCHEMA)
    return document


def test_every_fault_and_gap_is_a_finding() -> None:
    judged = SWEEP.judgement
    document = made(judged)
    assert len(document["findings"]) == len(judged.faults) + len(judged.gaps) > 0
    severities = [finding["severity"] for finding in document["findings"]]
    assert severities == ["error"] * len(judged.confirmed) + ["warning"] * (len(severities) - len(judged.confirmed))


def test_a_finding_names_the_check_that_the_fault_names() -> None:
    document = made(SWEEP.judgement)
    for fault, finding in zip(document["faults"], document["findings"], strict=False):
        assert finding["id"] == (fault["check"] or "BEN001")
        assert all(where in finding["message"] for where in fault["where"])


def test_runs_that_fail_are_a_finding_without_a_bandwidth() -> None:
    judged = SWEEP.judgement
    failed = replace(judged, faults=tuple(replace(fault, share=None) for fault in judged.faults))
    findings = sweep_findings(failed, SWEEP.plans[-1].fabric)
    assert all("its runs fail" in finding.message for finding in findings[: len(judged.faults)])
    assert all(finding.id == "BEN001" for finding in findings[: len(judged.faults)])


def test_a_sweep_without_faults_has_no_findings() -> None:
    assert made(SweepJudgement())["findings"] == []
