"""The last two lines of a report repeat the answer and what to do, so that they are on the screen after any output."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.report.text import Answer, Page, Part
from topodiag.words.fold import fold_hosts, grouped

FEW_LINES = 10
"""A report of so few lines needs no repetition."""
GROUPS_SHOWN = 3
_WORST_FIRST = "✖▲?●✔"


def note_answer(page: Page, *words: Part, sign: str = "", hue: str = "", name: str = "", action: str = "") -> None:
    """Keep an answer for the last lines."""
    page.answers.append(Answer(sign, hue, name, page.text(*words), action))


def repeat_answers(page: Page) -> None:
    """The last lines: answers alike folded, the worst first, and what to do about the worst."""
    if not page.answers or page.style.quiet or len(page.lines) <= FEW_LINES:
        return
    groups = alike(page.answers)
    page.blank()
    items: list[Part] = []
    for group in groups[:GROUPS_SHOWN]:
        first = group[0]
        names = fold_hosts([answer.name for answer in group if answer.name])
        lead = [page.text((first.sign, first.hue), " ")] if first.sign else []
        items.append(page.text(*lead, *([page.text((names, "strong"), "  ")] if names else []), first.words))
    if len(groups) > GROUPS_SHOWN:
        items.append((f"{len(groups) - GROUPS_SHOWN} more", "dim"))
    begin = len(page.lines)
    page.add_items("", items)
    page.keep_lines(begin, min(len(groups), GROUPS_SHOWN + 1))
    if action := groups[0][0].action:
        page.add_last("do", action, hue="ok")


def alike(answers: Sequence[Answer]) -> list[list[Answer]]:
    """Answers with the same sign and words together, the worst first."""
    groups = grouped(((answer.sign, answer.words.plain), answer) for answer in answers)
    return sorted(groups.values(), key=lambda group: _WORST_FIRST.find(group[0].sign) if group[0].sign else 0)
