"""What is said of an excerpt that no check understands: the cause that texts with its words had.

It is a note and never an alarm, however like it is: a resemblance is no evidence. Where a check sees a fault by itself
this says nothing.
"""

from __future__ import annotations

from topodiag.checks.page import COMMANDS, Command, page_of
from topodiag.checks.registry import check_class
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.likeness import Likely

CONFIRMS = 1


def like(likely: Likely, *, harmless: bool) -> Finding | None:
    """The note of one cause; None where the catalogue has no such check any more."""
    check = check_class(likely.check)
    if check is None:
        return None
    words = ", ".join(likely.words)
    doubt = "resembles texts in which nothing was wrong; if something is, like" if harmless else "resembles"
    return Finding(
        id=likely.check,
        severity=Severity.INFO,
        message=f"{doubt} {likely.check} ({check.title}): a resemblance by the words {words}, no evidence",
        observed=f"words of such texts: {words}",
        expected="a line that says so: a resemblance is no evidence",
        fix=(
            *(f"look with {each}" for each in _confirm(check)),
            f"`topodiag explain {likely.check}` says what shows it, and what to change then",
        ),
        cost=Cost(text="none is known: it is not established that anything is wrong"),
        evidence=likely.lines,
        confidence=Confidence.LOW,
    )


def title_of(note: Finding) -> str:
    """`resembles NET002 (the wrong interface is used)`: the note without its words."""
    return note.message.partition(": a resemblance")[0]


def _confirm(check: type) -> tuple[str, ...]:
    sections = [section for section in page_of(check).sections if section.name == COMMANDS]
    commands = [part for section in sections for block in section.blocks for part in block if isinstance(part, Command)]
    return tuple(f"`{part.command}`" for part in commands[:CONFIRMS])


__all__ = ["like", "title_of"]
