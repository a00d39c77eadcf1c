"""Which nodes of a fleet no job should get, and what is told of all of them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.fleet.fleets import both, fleet, with_fact
from topodiag.app import compare as module
from topodiag.fleet.digest import Digest
from topodiag.fleet.nodes import Fleet
from topodiag.model.finding import Finding, Severity, Where
from topodiag.model.fleet import FleetResult


def found(check: str, severity: Severity, message: str = "a fault") -> Finding:
    return Finding(check, severity, message, "seen", "expected", ("mend it",))


def having(*findings: Finding):  # type: ignore[no-untyped-def]
    def change(digest: Digest) -> Digest:
        own = tuple(replace(finding, where=Where(nodes=(digest.host,))) for finding in findings)
        return replace(digest, findings=own)

    return change


def result_of(nodes: Sequence[Digest], monkeypatch: pytest.MonkeyPatch) -> FleetResult:
    monkeypatch.setattr(module, "read_fleet", lambda paths, **_: Fleet(tuple(nodes)))
    return module.compare(["captures"])


def test_a_node_with_an_error_is_excluded_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(fleet(20, {4: having(found("NVL001", Severity.ERROR))}), monkeypatch)
    assert result.failed == ("n0004",)
    assert result.exclusions[0].reasons == (("NVL001", "a fault"),)
    assert len(result.passed) == 19


def test_a_node_that_differs_in_what_can_cost_bandwidth_is_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(fleet(20, {4: with_fact("pci", "width", "8", part="gpu2")}), monkeypatch)
    assert result.failed == ("n0004",)
    assert result.exclusions[0].reasons == (("FLT001", "PCIe width of gpu2: 8 (19 of 20: 16)"),)


def test_a_difference_that_costs_nothing_excludes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(fleet(20, {4: with_fact("gpu", "bus id", "0000:99:00.0", part="gpu2")}), monkeypatch)
    assert result.failed == ()
    assert [(finding.id, finding.severity) for finding in result.findings] == [("FLT001", Severity.INFO)]


def test_a_warning_that_all_nodes_have_excludes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(fleet(20, dict.fromkeys(range(20), having(found("HST003", Severity.WARNING)))), monkeypatch)
    assert result.failed == ()
    [one] = result.findings
    assert len(one.where.nodes) == 20


def test_a_warning_of_a_node_that_tells_its_difference_excludes_it_and_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change = both(with_fact("limits", "open files", "1024"), having(found("HST001", Severity.WARNING)))
    plain = [replace(each, facts=(*each.facts, replace(each.facts[0], family="limits", sources=(),
             values=((("", "open files", ""), "1048576"),)))) for each in fleet(20)]  # fmt: skip
    plain[9] = change(plain[9])
    result = result_of(plain, monkeypatch)
    assert result.failed == ("n0009",)
    assert result.exclusions[0].reasons == (("HST001", "a fault"),)
    assert [finding.id for finding in result.findings] == ["HST001"]


def test_nodes_with_the_same_reasons_are_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    sick = having(found("GPU001", Severity.ERROR))
    result = result_of(fleet(40, {1: sick, 2: sick, 3: having(found("NVL001", Severity.ERROR))}), monkeypatch)
    assert [exclusion.nodes for exclusion in result.exclusions] == [("n0003",), ("n0001", "n0002")]
