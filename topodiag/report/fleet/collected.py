"""What came of a collection: the counts, then the nodes that did not answer, folded by why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TextIO

from topodiag.lazy import regex
from topodiag.model.collect import Collection, NodeAnswer, State, document
from topodiag.report.text import Page
from topodiag.words.units import fold_hosts, grouped, plural, spell_s

_SIGNS = {
    State.TIMED_OUT: ("▲", "warning"),
    State.REFUSED: ("✖", "error"),
    State.GARBAGE: ("✖", "error"),
    State.NOT_ASKED: ("?", "unknown"),
}
REASONS_SHOWN = 12
_OWN = regex(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\bport \d{1,5}\b|\b[0-9a-f:]{2,39}::[0-9a-f:]*")
"""What differs from node to node in the same complaint."""


def write_collection(done: Collection, stream: TextIO) -> None:
    """The collection as collect.json."""
    stream.write(document(done).decode("ascii", "backslashreplace"))


def draw_collection(page: Page, done: Collection) -> None:
    """The counts first, then each reason with its nodes, then what to do next."""
    states = Counter(answer.state for answer in done.answers)
    counts = [f"{states[State.ANSWERED]} answered"]
    counts += [f"{states[state]} {state.value}" for state in _SIGNS if states[state]]
    if done.before:
        counts.append(f"{len(done.before)} had a good bundle before")
    sign, hue = ("✔", "ok") if done.complete else ("▲", "warning")
    asked = plural(len(done.answers), "node")
    words = ", ".join(counts)
    page.add(page.text((sign, hue), " "), (words, "strong"), f"  of {asked}, by {done.via}, {spell_s(done.seconds)}")
    page.note_answer(words, sign=sign, hue=hue)
    if done.stopped:
        page.add("  ", f"it ended early: {done.stopped}")
    _draw_silent(page, done)
    _draw_hung(page, [*done.answers, *done.before])
    if states[State.ANSWERED] or done.before:
        page.blank()
        page.add("  ", ("bundles  ", "dim"), done.folder)
        page.add("  ", ("next     ", "dim"), f"topodiag fleet compare {done.folder}")


def _draw_silent(page: Page, done: Collection) -> None:
    """The nodes that did not answer, by state and by the reason without what is the node's own: name, address, port."""
    for state, (sign, hue) in _SIGNS.items():
        groups = grouped((_OWN.sub("*", answer.why.replace(answer.node, "*")), answer) for answer in done.of(state))
        ordered = sorted(groups.values(), key=len, reverse=True)
        shown = page.some(ordered, REASONS_SHOWN)
        if shown:
            page.blank()
        for group in shown:
            nodes = fold_hosts([answer.node for answer in group])
            page.add(
                page.text("  ", (sign, hue), " "), (state.value, hue), "  ", (nodes, "strong"), f"  {group[0].why}"
            )
        if len(shown) < len(ordered):
            rest = [answer.node for group in ordered[len(shown) :] for answer in group]
            page.add("    ", f"{plural(len(ordered) - len(shown), 'more reason')} (-v): {fold_hosts(rest)}")


def _draw_hung(page: Page, answers: Iterable[NodeAnswer]) -> None:
    """Bundles that came although some of the collector's commands hung."""
    hung = grouped((probe, answer.node) for answer in answers for probe in answer.hung_probes)
    if hung:
        page.blank()
    for item, nodes in sorted(hung.items(), key=lambda pair: -len(pair[1])):
        page.add(page.text("  ", ("▲", "warning"), " "), f"{item} did not end on ", (fold_hosts(nodes), "strong"))
