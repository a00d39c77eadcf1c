"""What `topodiag explain EVENT` and `explain --line` print: entries of the catalogue of sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topodiag.app.sentences import Signature
    from topodiag.report.text import Page


def draw_event(page: Page, name: str) -> bool:
    """The entries of an event or the entry with this id; False where there is none."""
    from topodiag.app.sentences import entries  # noqa: PLC0415 - the catalogue is read where it is asked for

    signatures = entries(name)
    for number, entry in enumerate(signatures):
        if number:
            page.blank()
        _draw_entry(page, entry)
    return bool(signatures)


def draw_line(page: Page, line: str) -> None:
    """Which entries take a line, with what they read out of it, and why others that have its words do not."""
    from topodiag.app.sentences import LineMatch, verdicts  # noqa: PLC0415 - as above

    answers = verdicts(line)
    if not answers:
        page.add("", "no entry of the catalogue has words of this line")
    for answer in answers:
        entry = answer.entry
        if isinstance(answer, LineMatch):
            page.add("", ("takes it  ", "ok"), (entry.id, "strong"), f"  event {entry.says}")
            for name, value in answer.fields.items():
                page.add("  ", f"{name} = {value}")
        else:
            page.add("", ("leaves it  ", "dim"), (entry.id, "strong"), f"  {answer.why}")


def _draw_entry(page: Page, entry: Signature) -> None:
    page.add("", (entry.id, "strong"), f"  event {entry.says}")
    for name, text in (
        ("source", "; ".join(entry.sources)),
        ("speaker", f"{entry.trust}, about a {entry.scope}"),
        ("literal", " | ".join(entry.literals)),
        ("pattern", entry.match),
        ("unless", entry.unless),
        ("near", entry.near.match if entry.near is not None else ""),
        ("ended by", entry.over.match if entry.over is not None else ""),
    ):
        if text:
            page.add(f"  {name:<9}", text)
    for name, lines in (("takes", entry.shows), ("leaves", entry.silent)):
        for line in lines:
            page.add(f"  {name:<9}", *line.replace("\n", " ⏎ ").splitlines())
