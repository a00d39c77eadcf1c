"""Reports for machines: Nagios, Prometheus, JSON."""

import json
from dataclasses import replace
from functools import partial
from importlib.resources import files

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tests.printed import written
from tests.report import machines
from tests.valid import assert_valid
from topodiag.checks import registry
from topodiag.model.finding import Severity
from topodiag.model.result import Result
from topodiag.report.formats import prometheus
from topodiag.report.formats.nagios import State, state_of
from topodiag.report.registry import report


def rendered(result):
    return written(report("nagios"), result)


def with_severity(severity):
    return replace(machines.sick(), findings=(machines.finding(severity=severity),))


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (machines.healthy(), State.OK),
        (with_severity(Severity.INFO), State.OK),
        (with_severity(Severity.WARNING), State.WARNING),
        (machines.sick(), State.CRITICAL),
        (machines.without_gpus(), State.UNKNOWN),
        (machines.without_gpus(hung=True), State.UNKNOWN),
        (Result(), State.UNKNOWN),
        (replace(machines.healthy(), outcomes=()), State.UNKNOWN),
    ],
)
def test_the_state_follows_the_worst_finding_and_unknown_is_not_ok(result, state):
    assert state_of(result) is state
    assert rendered(result).startswith(f"TOPODIAG {state.name} - ")


def test_the_line_names_the_worst_findings_and_has_performance_data():
    text, _, data = rendered(machines.sick()).partition(" | ")
    assert "2 errors, 1 warning: NVL001 GPU3 has 12 of 18 NVLinks active" in text
    assert data.split()[:2] == ["errors=2;;1;0", "warnings=1;1;;0"]


@given(st.text())
def test_any_message_stays_one_line_with_one_bar(message):
    made = rendered(replace(machines.sick(), findings=(machines.finding(message=message),)))
    assert made.count("\n") == 1
    assert made.count("|") == 1
    assert made.isascii()


# --- the exposition has a series for every check, 0 too, and bounded labels


def samples(result, now=1764000000.0):
    text = written(partial(prometheus.write, clock=lambda: now), result)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(document, name, **labels):
    return document[name, frozenset(labels.items())]


def test_findings_are_counted_by_id_severity_and_node():
    metrics = samples(machines.sick())
    assert value(metrics, "topodiag_finding", id="NVL001", severity="error", node="gpu-002") == 1
    assert value(metrics, "topodiag_finding", id="PCI001", severity="warning", node="gpu-002") == 1


def test_every_check_has_its_series_even_at_zero():
    metrics = samples(machines.healthy())
    for check in registry.ids():
        for severity in ("info", "warning", "error"):
            assert value(metrics, "topodiag_finding", id=check, severity=severity, node="gpu-001") == 0


def test_the_status_of_every_check_is_there():
    metrics = samples(machines.sick())
    assert value(metrics, "topodiag_check_status", id="NVL001", status="finding") == 1
    assert value(metrics, "topodiag_check_status", id="PCI003", status="unknown") == 1
    assert value(metrics, "topodiag_check_status", id="PCI003", status="clean") == 0


def test_the_run_and_the_build_are_told():
    metrics = samples(machines.healthy(), now=12.5)
    assert value(metrics, "topodiag_run_timestamp_seconds") == 12.5
    assert any(name == "topodiag_build_info" for name, _ in metrics)


@given(st.text())
def test_any_host_name_gives_a_text_that_parses(host):
    assert samples(Result(nodes=(machines.Node(host),), findings=machines.SICK_FINDINGS))


# --- the JSON is one object of the published schema, stable to the byte, and never says 0 for unknown


SCHEMA = json.loads((files("topodiag.report") / "schema" / "result-1.0.schema.json").read_text())


def as_json(result):
    return written(report("json"), result)


def parsed(result):
    return json.loads(as_json(result))


@pytest.mark.parametrize(
    "make", [machines.healthy, machines.sick, machines.without_gpus, machines.only_matrix, machines.large, Result]
)
def test_every_kind_of_result_is_valid(make):
    assert_valid(parsed(make()), SCHEMA)


def test_the_schema_notices_a_missing_key():
    broken = parsed(machines.sick())
    del broken["findings"][0]["expected"]
    with pytest.raises(jsonschema.ValidationError):
        assert_valid(broken, SCHEMA)


def test_equal_results_give_equal_bytes():
    assert as_json(machines.sick()) == as_json(machines.sick())
