"""The picture of a machine with its title, the machine in words, and its verdict: what was found on it."""

from __future__ import annotations

from topodiag.draw.picture import Picture, picture_of
from topodiag.model.node import Node
from topodiag.model.result import Result
from topodiag.report.node.header import machine_words
from topodiag.report.words import counted, findings_of


def titled_picture(result: Result, node: Node) -> Picture:
    """The picture of a node of this result."""
    findings = findings_of(result, node)
    title = ", ".join(text for _, text in counted(findings)) or "no faults found in what was seen"
    words = " · ".join([node.host or "this node", *machine_words(node)])
    return picture_of(node, findings, words, title)
