"""`topo check`: the verdict on a topology file, its findings, what NCCL passes over in silence, what was not judged."""

from __future__ import annotations

from topodiag.model.finding import Status
from topodiag.model.nccl_tree import Refusal
from topodiag.model.nccl_versions import NEWEST, OLDEST, spell_range
from topodiag.model.node import Node
from topodiag.model.result import Result
from topodiag.report.findings import draw_findings
from topodiag.report.grid import draw_assumed
from topodiag.report.node.header import draw_machine_line, draw_verdict
from topodiag.report.text import Page
from topodiag.report.words import findings_of, judged
from topodiag.words.places import base_name
from topodiag.words.units import grouped

NOTES_SHOWN = 8
"""Notes that differ in their words; those alike share one line."""
LINES_SHOWN = 4


def draw_check(page: Page, result: Result) -> None:
    """What a person reads of one file."""
    for node in result.nodes:
        name = node.nccl_file.name if node.nccl_file is not None else node.host
        draw_verdict(page, base_name(name), findings_of(result, node), judged(result, node.host), what="read")
        if not page.style.quiet:
            draw_machine_line(page, node)
            _draw_silence(page, result, node)
    draw_findings(page, result.findings, several_nodes=False)
    if not page.style.quiet:
        for node in result.nodes:
            _draw_notes(page, node)
        of_nodes = {gap for node in result.nodes for gap in node.not_observed}
        draw_assumed(page, (gap.why for gap in result.not_observed if gap not in of_nodes))
    page.repeat_answers()


def _draw_silence(page: Page, result: Result, node: Node) -> None:
    """What was asked and is in order, and what could not be judged, each with its reason."""
    for outcome in result.outcomes:
        if outcome.status is Status.CLEAN and outcome.why:
            page.add(page.text("  ", ("✔", "ok"), " ", (outcome.check, "name"), "  "), outcome.why)
        elif outcome.status is Status.UNKNOWN or (outcome.status is Status.NOT_APPLICABLE and page.style.verbose):
            sign = ("?", "unknown") if outcome.status is Status.UNKNOWN else ("-", "dim")
            page.add(page.text("  ", sign, " ", (outcome.check, "name"), "  "), (outcome.why, "dim"))


def _draw_notes(page: Page, node: Node) -> None:
    """What NCCL's reader passes over without a word that anyone would see."""
    notes = node.nccl_file.notes if node.nccl_file is not None else ()
    if not notes:
        return
    page.heading("NCCL passes over in silence")
    alike = grouped((note.words + _versions(note), note.line) for note in notes)
    for words, lines in page.listed(list(alike.items()), NOTES_SHOWN, "note"):
        page.add(page.text("  ", (_lines(page, lines), "close"), "  "), words)


def _versions(note: Refusal) -> str:
    if (note.since, note.until) == (OLDEST, NEWEST):
        return ""
    return f" ({spell_range(note.since, note.until)})"


def _lines(page: Page, lines: list[int]) -> str:
    """`line 3`, `lines 3, 4, 5 … (32)`."""
    shown = page.some(lines, LINES_SHOWN)
    rest = f" … ({len(lines)})" if len(lines) > len(shown) else ""
    return f"{'line' if len(lines) == 1 else 'lines'} {', '.join(map(str, shown))}{rest}"
