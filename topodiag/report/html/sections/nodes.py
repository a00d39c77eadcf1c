"""The nodes by kind: those with the same machine, software and findings are one row, however many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from topodiag.draw.fleet import draw_parts
from topodiag.model.finding import Severity
from topodiag.model.node import Node, Sight, gpu_sight
from topodiag.model.result import Result
from topodiag.report.grid import Cell, Columns, Field
from topodiag.report.html.interface import Grid, Section, Sheet, drawings_of, figures, grid_of
from topodiag.report.node.header import installed_words, machine_words
from topodiag.report.words import SIGNS, of_hosts
from topodiag.words.units import fold_hosts, plural

ROWS_SHOWN = 2000
Kind = tuple[str, str, str, tuple[tuple[str, Severity], ...]]
"""What nodes of one row share: machine, software, why its GPUs were not seen, its checks with their severity."""


def section(sheet: Sheet) -> Section | None:
    """None without a node."""
    result = sheet.result
    parts = draw_parts([node.host for node in result.nodes], result.findings, prefix="parts")
    note = plural(len(result.nodes), "node") if result.nodes else ""
    return figures(sheet, "nodes", "Nodes", drawings_of(("Nodes by parts", parts)), [_kinds(result)], note)


def _kinds(result: Result) -> Grid:
    of_host = of_hosts(result)
    groups: dict[Kind, list[Node]] = defaultdict(list)
    for node in result.nodes:
        findings = of_host(node.host).findings
        pairs = tuple(dict.fromkeys((finding.id, finding.severity) for finding in findings))
        sight = gpu_sight(node)
        unseen = "" if sight.sight is Sight.SEEN else sight.why
        groups[" · ".join(machine_words(node)), " · ".join(installed_words(node)), unseen, pairs].append(node)
    ordered = sorted(groups.items(), key=lambda item: (-max((s for _, s in item[0][3]), default=0), -len(item[1])))
    caption, rest = "Nodes, those alike together", "kinds of nodes are in the JSON"
    return grid_of("nodes-by-kind", caption, _COLUMNS, ordered, ROWS_SHOWN, rest)


def _findings(unseen: str, pairs: Sequence[tuple[str, Severity]]) -> Cell:
    worst = max((severity for _, severity in pairs), default=None)
    words = f"{SIGNS[worst]} {', '.join(check for check, _ in pairs)}" if worst is not None else "none"
    if unseen:
        words = f"{words}; ? GPUs not seen: {unseen}" if pairs else f"? GPUs not seen: {unseen}"
    return Cell((words, str(worst)), worst or 0)


def _captured(nodes: Sequence[Node]) -> str:
    times = sorted({node.time.value for node in nodes if node.time.value})
    return f"captured {times[0]}{f' to {times[-1]}' if len(times) > 1 else ''}" if times else ""


_COLUMNS: Columns[tuple[Kind, list[Node]]] = {
    Field("Nodes"): lambda row: fold_hosts([node.host or "this node" for node in row[1]]),
    Field("Count", right=True): lambda row: len(row[1]),
    Field("Findings"): lambda row: _findings(row[0][2], row[0][3]),
    Field("Machine"): lambda row: row[0][0],
    Field("Software"): lambda row: " · ".join(filter(None, (row[0][1], _captured(row[1])))),
}
