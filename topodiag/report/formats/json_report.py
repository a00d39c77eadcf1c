"""The machine-readable result: one JSON object of schema version 1, described by schema/result-1.0.schema.json.

Keys and their order are stable, findings stand worst first, and equal evidence gives equal bytes: no time of the run
is in it. Unknown values are null, never 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from topodiag.hardware.catalog import gpu_by_name
from topodiag.model.devices import Gpu, Nic
from topodiag.model.finding import Finding, Input, Outcome
from topodiag.model.links import Link, Path
from topodiag.model.node import Node
from topodiag.model.provenance import Disagreement, Fact, NotObserved, Origin
from topodiag.model.result import Result
from topodiag.report.bench.json import benchmark_facts
from topodiag.report.gaps import gaps_of, unread_count
from topodiag.report.interface import Report, Style
from topodiag.report.node.matrix import nic_labels, path_word
from topodiag.report.words import gpu_sight
from topodiag.version import __version__

SCHEMA_VERSION = "1.0"
"""major.minor: a minor adds keys, a major may change or remove them."""
MAX_UNREAD = 1000
"""Unread lines given with their text; `unread_count` counts all."""

Json = dict[str, Any]


class JsonReport(Report):
    """`--format json`. Pure ASCII, so that any terminal encoding carries it."""

    name = "json"

    def render(self, result: Result, stream: TextIO, style: Style) -> None:
        json.dump(_finite(document(result)), stream, indent=2, ensure_ascii=True, allow_nan=False)
        stream.write("\n")


def document(result: Result) -> Json:
    """The whole object, as plain values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "topodiag", "version": __version__},
        "inputs": [_input(piece) for piece in result.inputs],
        "facts": {
            "nodes": [_node(node) for node in result.nodes],
            "jobs": _jobs(result),
            "benchmarks": [benchmark_facts(each) for each in result.benchmarks],
        },
        "findings": [finding_json(finding) for finding in result.findings],
        "outcomes": [_outcome(outcome) for outcome in result.outcomes],
        "not_observed": [_gap(gap) for gap in gaps_of(result)],
        "unread_count": unread_count(result),
        "unread": [
            {"source": line.source, "line": line.line, "text": line.text, "why": line.why}
            for line in result.unread[:MAX_UNREAD]
        ],
    }


def _jobs(result: Result) -> list[Json]:
    if not result.jobs:
        return []
    from topodiag.report.job.json import job_facts  # noqa: PLC0415 - numpy, which a scan never needs

    return [job_facts(job) for job in result.jobs]


def _finite(value: Any) -> Any:
    """The value with NaN and infinities, which JSON has no word for, as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def _input(piece: Input) -> Json:
    return {
        "path": piece.path,
        "kind": piece.kind,
        "sha256": piece.sha256,
        "lines": piece.lines,
        "records": piece.records,
        "unparsed": piece.unparsed,
    }


def _node(node: Node) -> Json:
    sight = gpu_sight(node)
    return {
        "host": node.host,
        "system": node.system.value,
        "time": node.time.value,
        "gpus_seen": {"status": sight.sight.value, "why": sight.why},
        "cpu": {"name": node.cpu.name.value, "arch": node.cpu.arch.value, "sockets": node.cpu.sockets.value},
        "os": {
            "kernel": node.os.kernel.value,
            "driver_version": node.os.driver_version.value,
            "cuda_version": node.os.cuda_version.value,
            "virtualization": node.os.virtualization.value,
            "container": node.os.container.value,
        },
        "numa": [{"id": numa.id, "cpus": numa.cpus.value, "socket": numa.socket.value} for numa in node.numa],
        "gpus": [_gpu(node, gpu) for gpu in node.gpus],
        "nics": [_nic(node, nic) for nic in node.nics],
        "matrix": _matrix(node),
        "links": [_link(link) for link in node.links],
        "paths": _paths(node.paths),
        "disagreements": [_disagreement(item) for item in node.disagreements],
    }


def _pcie(node: Node, device: Gpu | Nic) -> Json:
    pci = node.pci_of(device)
    if pci is None:
        return {"width": None, "max_width": None, "gen": None, "max_gen": None}
    return {
        "width": pci.width.value,
        "max_width": _first(pci.slot_max_width, pci.max_width),
        "gen": pci.gen.value,
        "max_gen": _first(pci.slot_max_gen, pci.max_gen),
    }


def _first(*facts: Fact[int]) -> int | None:
    return next((fact.value for fact in facts if fact.value is not None), None)


def _gpu(node: Node, gpu: Gpu) -> Json:
    spec = gpu_by_name(gpu.name.value) if gpu.name.value else None
    return {
        "index": gpu.index,
        "bus_id": gpu.bus_id,
        "name": gpu.name.value,
        "uuid": gpu.uuid.value,
        "sm": gpu.sm.value,
        "numa": gpu.numa.value,
        "nvlinks": {
            "active": gpu.active_links,
            "expected": spec.nvlinks if spec else None,
            "gbps_each": gpu.nvlink_rate,
        },
        "c2c_gbs": gpu.c2c_gbs.value,
        "pcie": _pcie(node, gpu),
    }


def _nic(node: Node, nic: Nic) -> Json:
    first = nic.ports[0] if nic.ports else None
    return {
        "name": nic.name,
        "bus_id": nic.bus_id,
        "rdma_name": nic.rdma_name,
        "part": nic.part.value,
        "rate_gbps": first.rate_gbps.value if first else None,
        "state": first.state.value if first else None,
        "link_layer": first.link_layer.value if first else None,
        "numa": nic.numa.value,
        "role": nic.role.value,
        "role_why": nic.role_why,
        "pcie": _pcie(node, nic),
        "ports": [
            {
                "number": port.number,
                "state": port.state.value,
                "phys_state": port.phys_state.value,
                "rate_gbps": port.rate_gbps.value,
                "link_layer": port.link_layer.value,
            }
            for port in nic.ports
        ],
    }


def _matrix(node: Node) -> dict[str, dict[str, str]]:
    """Rows of GPUs and NICs by label, each with its known pairs."""
    devices: list[tuple[str, tuple[str, ...]]] = [(gpu.label, (gpu.label,)) for gpu in node.gpus]
    devices += [(nic.name, nic_labels(nic)) for nic in node.nics]
    rows: dict[str, dict[str, str]] = {}
    for name, labels in devices:
        row = {
            other: word
            for other, others in devices
            if other != name and (word := path_word(node, labels, others)) is not None
        }
        if row:
            rows[name] = row
    return rows


def _link(link: Link) -> Json:
    return {
        "a": link.a,
        "b": link.b,
        "kind": link.kind.value,
        "count": link.count,
        "intended_gbs": link.intended_gbs.value,
        "negotiated_gbs": link.negotiated_gbs.value,
        "latency_us": link.latency_us.value,
        "label": link.label,
    }


def _paths(paths: Mapping[tuple[str, str], Path]) -> list[Json]:
    return [
        {
            "from": a,
            "to": b,
            "type": path.type.name,
            "vertices": list(path.vertices),
            "intended_gbs": path.intended_gbs,
            "negotiated_gbs": path.negotiated_gbs,
        }
        for (a, b), path in paths.items()
    ]


def _disagreement(item: Disagreement) -> Json:
    return {
        "subject": item.subject,
        "field": item.field,
        "taken": item.taken,
        "taken_from": _origin(item.taken_from),
        "other": item.other,
        "other_from": _origin(item.other_from),
    }


def _origin(origin: Origin) -> Json:
    return {"source": origin.source, "line": origin.line, "text": origin.text, "command": origin.command}


def _origins(origins: Sequence[Origin]) -> list[Json]:
    return [_origin(origin) for origin in origins]


def finding_json(finding: Finding) -> Json:
    where = finding.where
    return {
        "id": finding.id,
        "severity": str(finding.severity),
        "confidence": str(finding.confidence),
        "message": finding.message,
        "where": {
            "nodes": list(where.nodes),
            "gpus": list(where.gpus),
            "nics": list(where.nics),
            "ranks": list(where.ranks),
            "links": list(where.links),
            "jobs": list(where.jobs),
        },
        "observed": finding.observed,
        "expected": finding.expected,
        "cost": {"gbs_lost": finding.cost.gbs_lost, "share": finding.cost.share, "text": finding.cost.text},
        "evidence": _origins(finding.evidence),
        "coverage": _coverage(finding),
        "fix": list(finding.fix),
        "docs": f"topodiag explain {finding.id}",
    }


def _coverage(item: Finding | Outcome) -> Json | None:
    coverage = item.coverage
    return None if coverage is None else {"seen": coverage.seen, "total": coverage.total, "what": coverage.what}


def _outcome(outcome: Outcome) -> Json:
    return {
        "check": outcome.check,
        "status": outcome.status.value,
        "node": outcome.node,
        "findings": len(outcome.findings),
        "why": outcome.why,
        "coverage": _coverage(outcome),
    }


def _gap(gap: NotObserved) -> Json:
    return {"what": gap.what, "why": gap.why, "needs_root": gap.needs_root}
