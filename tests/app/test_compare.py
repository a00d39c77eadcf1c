"""Which nodes of a fleet no job should get, and what is told of all of them."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.fleet.fleets import fleet_of
from tests.tables import examples
from topodiag.app import compare as module
from topodiag.fleet.digest import Digest
from topodiag.fleet.nodes import Fleet
from topodiag.model.fleet import FleetResult


def result_of(nodes: Sequence[Digest], monkeypatch: pytest.MonkeyPatch) -> FleetResult:
    monkeypatch.setattr(module, "read_fleet", lambda paths, **_: Fleet(tuple(nodes)))
    return module.compare(["captures"])


@examples("count", "changes", "excluded", "findings")
def test_nodes_that_no_job_should_get(
    count: int, changes: list[Any], excluded: list[Any], findings: list[Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of nodes that are excluded, each with its reasons; all findings, with their severity and the number of
    their nodes."""
    result = result_of(fleet_of(count, changes), monkeypatch)
    shown = [[list(each.nodes), [list(reason) for reason in each.reasons]] for each in result.exclusions]
    assert shown == excluded
    out = sorted(node for nodes, _ in excluded for node in nodes)
    assert sorted(result.failed) == out
    assert len(result.passed) == count - len(out)
    told = [[finding.id, finding.severity.name, len(finding.where.nodes)] for finding in result.findings]
    assert findings is None or told == findings
