"""`topo show`: a machine without verdict: what it is, its tree, its matrix. What the checks found is still marked."""

from __future__ import annotations

from topodiag.model.marks import Marks
from topodiag.model.node import Node
from topodiag.model.result import Result
from topodiag.report.node.header import draw_machine_line
from topodiag.report.node.matrix import draw_matrix
from topodiag.report.node.tree import draw_tree
from topodiag.report.text import Page
from topodiag.report.words import findings_of


def draw_machine(page: Page, result: Result, node: Node) -> None:
    findings = findings_of(result, node)
    draw_machine_line(page, node)
    draw_tree(page, node, Marks(findings))
    draw_matrix(page, node, findings)
