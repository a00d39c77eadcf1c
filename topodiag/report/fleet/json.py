"""A compared fleet as one object, as lines of JSON by node, and as a table of nodes and reasons."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import BinaryIO, TextIO

from topodiag.model import fleet as model
from topodiag.model.finding import Finding
from topodiag.report.documents.from_model import from_model
from topodiag.report.documents.parts import document_of
from topodiag.report.documents.types import fleet as shape
from topodiag.report.documents.write_json import plain
from topodiag.words.text import cell

COLUMNS = ("host", "cohort", "verdict", "check", "severity", "message", "gbs_lost", "path", "time")


def fleet_json(result: model.FleetResult) -> shape.FleetDocument:
    return document_of(
        shape.FleetDocument,
        result,
        nodes=_nodes(result),
        findings=result.findings,
        inputs=result.inputs,
        not_observed=result.left_out,
    )


def _nodes(result: model.FleetResult) -> Iterator[shape.FleetNode]:
    why = {host: each for each in result.exclusions for host in each.nodes}
    for node in result.nodes:
        found = why.get(node.host)
        yield from_model(
            shape.FleetNode, node, verdict="fail" if found else "pass", reasons=found.reasons if found else ()
        )


def write_lines(result: model.FleetResult, stream: TextIO) -> None:
    """One object a line: each node with its verdict and its reasons."""
    for node in _nodes(result):
        stream.write(json.dumps(plain(node), ensure_ascii=True, allow_nan=False) + "\n")


Row = tuple[str | int | float | None, ...]


def rows(result: model.FleetResult) -> Iterator[Row]:
    """One row for each node and finding of it, one for a node without any; the columns are COLUMNS."""
    found: dict[str, list[Finding]] = {}
    for finding in result.findings:
        for host in finding.where.nodes:
            found.setdefault(host, []).append(finding)
    failed = set(result.failed)
    for node in result.nodes:
        lead = (node.host, node.cohort, "fail" if node.host in failed else "pass")
        for each in found.get(node.host, ()):
            yield (*lead, each.id, str(each.severity), each.message, each.cost.gbs_lost, node.path, node.time)
        if node.host not in found:
            yield (*lead, "", "", "", None, node.path, node.time)


def write_csv(result: model.FleetResult, stream: TextIO) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows(result):
        writer.writerow([cell(value) if isinstance(value, str) else value for value in row])


def write_parquet(result: model.FleetResult, stream: BinaryIO) -> None:
    import pyarrow as pa  # noqa: PLC0415 - slow to load
    import pyarrow.parquet as pq  # noqa: PLC0415

    types = {"cohort": pa.int32(), "gbs_lost": pa.float64()}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in COLUMNS])
    columns = list(zip(*rows(result), strict=True)) or [()] * len(COLUMNS)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), stream, compression="zstd")
