"""A compared fleet as one object, as lines of JSON by node, and as a table of nodes and reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from topodiag.model import fleet as model
from topodiag.report.documents.from_model import Document, document_of, from_model
from topodiag.report.documents.write_json import plain
from topodiag.report.table_files import Row
from topodiag.words.fold import grouped

COLUMNS: Mapping[str, type | str] = {
    "host": str, "cohort": "int32", "verdict": str, "check": str, "severity": str, "message": str, "gbs_lost": float,
    "path": str, "time": str,
}  # fmt: skip
"""Of the table of nodes and findings, each with its type."""


def fleet_json(result: model.FleetResult) -> Document:
    return document_of("fleet.FleetDocument", result, nodes=_nodes(result), not_observed=result.left_out)


def _nodes(result: model.FleetResult) -> Iterator[Document]:
    why = {host: exclusion for exclusion in result.exclusions for host in exclusion.nodes}
    for node in result.nodes:
        exclusion = why.get(node.host)
        yield from_model(
            "fleet.FleetNode",
            node,
            verdict="fail" if exclusion else "pass",
            reasons=exclusion.reasons if exclusion else (),
        )


def json_lines(result: model.FleetResult) -> Iterator[str]:
    """One object a line: each node with its verdict and its reasons."""
    return (json.dumps(plain(node), ensure_ascii=True, allow_nan=False) for node in _nodes(result))


def rows(result: model.FleetResult) -> Iterator[Row]:
    """One row for each node and finding of it, one for a node without any; the columns are COLUMNS."""
    findings = grouped((host, finding) for finding in result.findings for host in finding.where.nodes)
    failed = set(result.failed)
    for node in result.nodes:
        lead = (node.host, node.cohort, "fail" if node.host in failed else "pass")
        for one in findings.get(node.host, ()):
            yield (*lead, one.id, str(one.severity), one.message, one.cost.gbs_lost, node.path, node.time)
        if node.host not in findings:
            yield (*lead, "", "", "", None, node.path, node.time)
