"""A GPU's NVLinks in a few words: `NVLink 18 × 26.6 GB/s`, `NVLink 12 of 18 × 26.6 GB/s`, or why there are none."""

from __future__ import annotations

from rich.text import Text

from topodiag.model.devices import Gpu
from topodiag.model.maker import XGMI, dialect_of
from topodiag.model.marks import Marks
from topodiag.model.node import Node
from topodiag.report.text import Page
from topodiag.words.units import in_gbs, spell_gbs


def nvlink_words(page: Page, node: Node, gpu: Gpu, marks: Marks) -> Text:
    """The words, red where a check found links missing or slow."""
    active = gpu.active_links
    if active is None:
        return _from_matrix(page, node, gpu, marks)
    total = len(gpu.nvlinks)
    ids = {finding.id for finding in marks.about("NVL", gpu.label)}
    count = f"{active}" if active == total else f"{active} of {total}"
    drawn = page.text(
        f"{dialect_of(node).links} ", (count, "sick" if "NVL001" in ids else "nvlink" if active else "dim")
    )
    rates = sorted(
        {link.line_gbs.value for link in gpu.nvlinks if link.line_gbs.value and link.state.value != "inactive"}
    )
    if rates and active:
        spread = in_gbs(rates[0]) if len(rates) == 1 else f"{spell_gbs(rates[0])}–{in_gbs(rates[-1])}"
        drawn.append_text(page.text(" × ", (spread, "sick" if "NVL002" in ids else "")))
    return drawn


def _from_matrix(page: Page, node: Node, gpu: Gpu, marks: Marks) -> Text:
    """Bonded links per peer, where only the matrix speaks of NVLink."""
    peers = [
        fact.value
        for (a, b), fact in node.smi_matrix.items()
        if a == gpu.label and b.startswith("GPU") and b != a and fact.value
    ]
    linked = [word for word in peers if word.startswith("NV") or word == XGMI]
    sick = bool(marks.about("NVL", gpu.label))
    if linked:
        words = ", ".join(sorted(set(linked), key=lambda word: (len(word), word)))
        to = f"{len(linked)} of {len(peers)} peers"
        return page.text((words, "nvlink"), " to ", (to, "sick" if sick and len(linked) < len(peers) else ""))
    if gpu.nvlink_note.value:
        return page.text((f"{dialect_of(node).links}: {gpu.nvlink_note.value}", "sick" if sick else "dim"))
    return page.text((f"no {dialect_of(node).links} to its peers", "sick") if sick and peers else "")
