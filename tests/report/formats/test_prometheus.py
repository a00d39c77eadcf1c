"""The exposition has a series for every check, 0 too, and bounded labels."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tests.printed import written
from tests.report import machines
from topodiag.checks import registry
from topodiag.model.result import Result
from topodiag.report.formats import prometheus


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
