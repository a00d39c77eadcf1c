"""The chain: each cause with what follows from it below, an arrow and the reason between them."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.draw.svg import Canvas, undrawn, wrap
from topodiag.lazy import dataclass
from topodiag.model.finding import Severity
from topodiag.model.verdict import Cause, Consequence, Verdict
from topodiag.words.units import few, in_gbs, neighbours, percent, plural

WIDE, INSET, PAD, LINE = 490, 22, 10, 16
"""The picture, the step to the right per level, the room in a box, and from line to line, px: a
telephone shows it whole."""
GAP, BETWEEN = 14, 26
"""From box to box of a chain, and from chain to chain, px."""
MOST_CAUSES, MOST_BELOW, MOST_DEPTH = 8, 8, 6
"""Boxes that a reader follows; of more their count is drawn."""
_KINDS = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.INFO: "plain"}


@dataclass(frozen=True, slots=True)
class _Box:
    """One box: `depth` levels below its cause, the words on its first line, the lines below, the reason above it."""

    depth: int
    head: str
    lines: tuple[str, ...]
    kind: str
    why: str = ""
    dashed: bool = False


def draw_chain(verdict: Verdict, *, prefix: str = "") -> str:
    """The picture, "" where there is no cause."""
    causes = verdict.causes[:MOST_CAUSES]
    if not causes:
        return ""
    below = sum(len(cause.consequences) for cause in causes)
    words = f"{plural(len(verdict.causes), 'cause')}, {plural(below, 'consequence')}"
    desc = f"{words}: " + "; ".join(_in_words(cause) for cause in causes)
    canvas = Canvas("Cause and consequences", desc, prefix)
    canvas.heading(words)
    y = 56.0
    for number, cause in enumerate(causes, 1):
        y = _draw(canvas, _boxes(cause, number), y) + BETWEEN
    if unseen := undrawn("", len(verdict.causes) - len(causes), "cause"):
        canvas.text(0, y, unseen, "quiet")
        y += BETWEEN
    return canvas.document(WIDE, y - BETWEEN + 8)


def _in_words(cause: Cause) -> str:
    names = list(dict.fromkeys(consequence.finding.id for consequence in cause.consequences))
    return f"{cause.finding.id} leads to {few(names)}" if names else f"{cause.finding.id} leads to nothing else"


def _boxes(cause: Cause, number: int) -> list[_Box]:
    finding = cause.finding
    price = cause.price
    cost = f"{in_gbs(price.gbs_lost)} lost" if price.gbs_lost else ""
    cost += f" ({percent(price.share)})" if cost and price.share else ""
    lines = [finding.message, *([cost] if cost else [])]
    head = f"{number}. {finding.id} {finding.severity}, {cause.status.value}"
    boxes = [
        _Box(0, head, tuple(_wrapped(lines, 0)), _KINDS[finding.severity], dashed=cause.status.value == "hypothesis")
    ]
    # Neighbours of one check and depth that follow for the same reason are one box.
    groups = neighbours(cause.consequences, lambda following: (following.finding.id, following.depth, following.why))
    for group in groups[:MOST_BELOW]:
        boxes.append(_below(group))
    left = sum(len(group) for group in groups[MOST_BELOW:])
    if left:
        boxes.append(_Box(1, f"{plural(left, 'more finding')} that follow", (), "plain"))
    return boxes


def _below(group: Sequence[Consequence]) -> _Box:
    first = group[0]
    depth = min(max(first.depth, 1), MOST_DEPTH)
    count = f" x {len(group)}" if len(group) > 1 else ""
    head = f"{first.finding.id} {first.finding.severity}{count}"
    more = f", and {len(group) - 1} more" if len(group) > 1 else ""
    lines = _wrapped([first.finding.message + more], depth)
    return _Box(depth, head, tuple(lines), "plain", first.why)


def _wrapped(texts: Sequence[str], depth: int) -> list[str]:
    return [line for text in texts for line in wrap(text, WIDE - depth * INSET - 2 * PAD, most=3)]


def _draw(canvas: Canvas, boxes: Sequence[_Box], y: float) -> float:
    """Boxes below each other; where the last one ends."""
    bottoms: dict[int, float] = {}
    for box in boxes:
        x = box.depth * INSET
        if box.why:
            for line in wrap(box.why, WIDE - x, 10.5, most=2):
                canvas.text(x, y + 8, line, "small")
                y += 14
        high = 2 * PAD + LINE * (len(box.lines) + 1) - 4
        canvas.rect(x, y, WIDE - x - 2, high, f"{box.kind} dashed" if box.dashed else box.kind, radius=5)
        kind = "badtext" if box.kind == "bad" else "name"
        canvas.text(x + PAD, y + PAD + 10, box.head, kind, room=WIDE - x - 2 * PAD)
        for number, line in enumerate(box.lines, 1):
            canvas.text(x + PAD, y + PAD + 10 + number * LINE, line)
        if box.depth:
            above = max((depth for depth in bottoms if depth < box.depth), default=0)
            trunk = above * INSET + INSET / 2 - 4
            canvas.arrow([(trunk, bottoms[above]), (trunk, y + high / 2), (x, y + high / 2)])
        y += high
        bottoms = {depth: at for depth, at in bottoms.items() if depth < box.depth} | {box.depth: y}
        y += GAP
    return y - GAP
