"""What is said beside an emitted file. A topology file: what was done, what is gained, and what still wants attention;
an nccl.conf: what is set, corrected and taken out, why, and what no file can do."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.model.nccl_conf import ConfAdvice
from topodiag.nccl.topo.answers import Comparison, TopoFile
from topodiag.report.grid import draw_sides
from topodiag.report.text import Page, Part
from topodiag.report.topo.predict import graph_rows
from topodiag.report.topo.what_if import NOTICEABLE
from topodiag.words.units import percent, plural, spell_bytes, spell_us

_FLAT = (
    "name the instance type (--instance NAME), or give a capture of the host (--host-capture) or a matrix of"
    " measurements (--affinity)"
)


def draw_topo_file(page: Page, topo_file: TopoFile, output: str | None, *, refused: bool) -> None:
    """The account of one file, for standard error."""
    sign: Part = ("✔", "ok") if topo_file.changes else ("▲", "doubtful") if topo_file.flat else ("=", "dim")
    same = "" if topo_file.changes else ", and decides as it does without it"
    words: Part = f"{topo_file.library} {topo_file.version} loads it{same}"
    if refused:
        sign, words = ("✖", "error"), ("not written: it would make things worse", "error")
    page.add(page.text(sign, " ", (output or "the topology file", "strong"), "  "), words)
    if not refused:
        if topo_file.flat:
            page.add("  ", ("the PCI tree is the guest's: ", "doubtful"), _FLAT)
        if output:
            page.add("  ", f"NCCL_TOPO_FILE={output}")
    for sentence in topo_file.done:
        page.add("  ", (sentence, "dim"))
    for repair in topo_file.repairs:
        page.add("  ", ("repaired  ", "ok"), repair.words)
    for finding in topo_file.left:
        page.add("  ", ("still in it  ", "doubtful"), f"{finding.id}: {finding.message}")
    if topo_file.left and not topo_file.repairs:
        page.add("  ", ("--repair restores what peers have, where they agree", "dim"))
    first = next(iter(topo_file.comparisons), None)
    if first is not None and not first.before.accepted:
        page.add("  ", ("as it is NCCL refuses it  ", "doubtful"), first.before.why)
    page.blank()
    for compared in topo_file.comparisons:
        _draw_comparison(page, compared)
    for sentence in topo_file.worse:
        page.add("  ", ("worse  ", "error"), sentence)
    if refused:
        page.add("  ", ("--force writes it all the same", "dim"))
    for repair in topo_file.repairs:
        page.add("  ", ("the hardware fault remains: ", "doubtful"), repair.attention)


def _draw_comparison(page: Page, compared: Comparison) -> None:
    head = f"{plural(compared.nodes, 'node')}, {plural(compared.after.ranks, 'GPU')}"
    rows = list(_rows(compared))
    if all(old == new for _, old, new in rows):
        words = "; ".join(f"{title} {new}" for title, _, new in (*rows[:1], *rows[-1:]))
        page.add("  ", f"{head}: no difference ", (f"({words})", "dim"))
        return
    draw_sides(page, (head, "now", "with the file"), rows)
    page.blank()


def _rows(compared: Comparison) -> Iterator[tuple[str, str, str]]:
    before, after = compared.before, compared.after
    if not before.accepted:
        yield "NCCL", "refuses it", "accepts it"
    yield from graph_rows(before, after)
    olds = {(choice.collective, choice.bytes): choice for choice in before.choices}
    for choice in after.choices:
        if choice.collective == "AllReduce":
            was = olds.get((choice.collective, choice.bytes))
            took = spell_us(was.time_us) if was else "?"
            change = _change(was.time_us, choice.time_us) if was else ""
            yield f"all-reduce of {spell_bytes(choice.bytes)}", took, spell_us(choice.time_us) + change


def _change(old: float, new: float) -> str:
    """How much time is saved or lost, where that is more than the model's rounding."""
    if old <= 0 or abs(new / old - 1) < NOTICEABLE:
        return ""
    if new < old / 2:
        return f" ({old / new:.1f} times as fast)"
    return f" ({percent(abs(new / old - 1))} {'less' if new < old else 'more'})"


def draw_conf(page: Page, advice: ConfAdvice, output: str | None) -> None:
    """The account of one file, for standard error."""
    if not advice.follows:
        mark, words = ("▲", "doubtful") if advice.elsewhere else ("✔", "ok"), "nothing follows for nccl.conf"
        page.add(page.text(mark, " ", (advice.subject, "strong"), "  "), words)
    else:
        kept = sum(entry.kept for entry in advice.entries)
        removals = sum(entry.value is None for entry in advice.entries)
        counts = (len(advice.entries) - kept - removals, "set"), (removals, "taken out"), (kept, "kept")
        words = ", ".join(f"{count} {what}" for count, what in counts if count)
        page.add(page.text(("✔", "ok"), " ", (output or "nccl.conf", "strong"), "  "), words)
    for entry in advice.entries:
        if not entry.kept:
            line = f"{entry.name}={entry.value}" if entry.value is not None else f"without {entry.was or entry.name}"
            page.add("  ", (line, "strong"))
            for sentence in entry.why:
                page.add("    ", (sentence, "dim"))
    for sentence in advice.elsewhere:
        page.add("  ", ("not by a file  ", "doubtful"), sentence)
