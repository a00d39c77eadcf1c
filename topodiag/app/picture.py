"""The wiring of the pictures: from what `topodiag scan --from` takes to a picture of the machine and what was found."""

from __future__ import annotations

from topodiag.app.diagnose import diagnose
from topodiag.emit.picture import Picture, picture_of
from topodiag.model.errors import InputError
from topodiag.report.node.header import machine_words
from topodiag.report.words import counted, findings_of


def picture(source: str) -> Picture:
    """The picture of the first machine in some evidence. Raises InputError where there is none to draw."""
    result = diagnose([source])
    node = result.nodes[0]
    if not (node.gpus or node.nics or node.numa):
        raise InputError(source, "shows no GPU, no NIC and no NUMA node to draw")
    findings = findings_of(result, node)
    found = ", ".join(text for _, text in counted(findings)) or "no faults found in what was seen"
    words = " · ".join([node.host or "this node", *machine_words(node)])
    return picture_of(node, findings, words, found)
