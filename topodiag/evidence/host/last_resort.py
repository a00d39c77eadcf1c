"""The reader of last resort: of a text that nothing else takes, the lines that say themselves that a part is at fault.

It makes no fact of the node. Each line becomes an event: of the fault that its part and its state name together, which
`checks/reported.py` makes a finding of low confidence of, else of the kind `told`, which no check judges and which
stands beside the findings as a line that nothing explains. Rows of a table are judged by the names of its columns, Xids
by their numbers. What a later line says is over is not told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from topodiag.evidence.host.contradictions import Contradiction, contradictions
from topodiag.evidence.host.named_columns import Cell, cells_of, rows_of
from topodiag.evidence.host.named_values import value_of
from topodiag.evidence.host.node_verdicts import is_well
from topodiag.evidence.host.part_states import MAX_LINE
from topodiag.evidence.host.refused_start import refused_starts
from topodiag.evidence.host.siblings_apart import odd_ones
from topodiag.evidence.host.told import told_of
from topodiag.evidence.host.told_xids import told_xids
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import Sentences, event
from topodiag.model.busid import normalise_bus_id
from topodiag.model.system import TOLD, TOLD_OF, KernelEvent
from topodiag.model.topics import Topic

_OVER = re.compile(
    r"\b(?:RESOLVED|recovered|cleared|restored|reconnected|back (?:up|online|to normal)|came back"
    r"|is up again|healthy again)\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"(?<![\w:.-])(?=[\w./-]*[A-Za-z])(?=[\w./-]*[\d_A-Z])[\w./-]{3,60}(?![\w:.-])")
"""Words that name something: with letters, and a digit, a capital or an underscore."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d|T\d\d|[A-Z]{2,12}\Z|[A-Z][a-z]{2}\Z")
_DEFINITION = re.compile(r"\bTraining State Machine (?:has )?failed\b")
"""What the counter of lost links counts, as its handbook says and agents quote beside any value of it."""
MOST_LATER = 500
"""Lines behind one that are asked whether it is over."""


class LastResort(Sentences):
    """Lines of any tool that say that a part is in a state that is a fault, or show it below its siblings."""

    kind = "any-tool"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 10
    most = 50  # a text that says more is a log of some program, and its first lines name what began it
    a_piece = "whose text it is, and of what, nobody knows"

    def recognises(self, head: str) -> bool:
        lines = head.split("\n")
        several = _of_tables(lines) or told_xids(lines) or odd_ones(head)
        return bool(several) or any(self.event_of(line) is not None for line in lines)

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed = super().parse(blob)
        lines = blob.text.split("\n")
        told = {record.origin.line for record in parsed.records}
        for row in [each for each in _of_tables(lines) if each.line not in told][: self.most]:
            parsed.records.append(event(f"{TOLD_OF}{row.fault}", row.text, blob, row.line, lines[row.line - 1]))
        kinds = {record.kind for record in parsed.records}
        for odd in odd_ones(blob.text)[: self.most]:
            if f"{TOLD_OF}{odd.fault}" not in kinds:
                parsed.records.append(event(f"{TOLD_OF}{odd.fault}", odd.said, blob, odd.line, odd.text))
        for each in told_xids(lines)[: self.most]:
            origin = blob.origin(each.line, lines[each.line - 1])
            bus = normalise_bus_id(each.bus_id) if each.bus_id is not None else None
            parsed.records.append(KernelEvent("xid", each.text, origin, None, bus, each.code, of_log=False))
        parsed.records = [each for each in parsed.records if not _is_over(each, lines)]
        return parsed

    def event_of(self, line: str) -> tuple[str, str] | None:
        cut = line[:MAX_LINE]
        if is_well(cut) or _DEFINITION.search(cut) is not None:
            return None
        text = " ".join(line.split())[:300]
        named = value_of(cut)
        if named is not None:
            return f"{TOLD_OF}{named.fault}", text
        said = told_of(line)
        if said is None:
            return None
        return (f"{TOLD_OF}{said.fault}", text) if said.fault else (TOLD, f"{said.part}, {said.state!r}: {text}")


def _of_tables(lines: Sequence[str]) -> list[Cell | Contradiction]:
    """What several lines say together."""
    told: list[Cell | Contradiction] = [
        *cells_of(lines),
        *rows_of(lines),
        *contradictions(lines),
        *refused_starts(lines),
    ]
    return [each for each in told if not is_well(lines[each.line - 1][:MAX_LINE])]


def _is_over(told: KernelEvent, lines: Sequence[str]) -> bool:
    """Whether a later line says that this is over, of all that its line names."""
    at = told.origin.line or 0
    named = _subjects(lines[at - 1]) if at else set()
    if not named:
        return False
    return any(
        _OVER.search(line) is not None and named <= _subjects(line)
        for line in lines[at : at + MOST_LATER]
        if len(line) <= MAX_LINE
    )


def _subjects(line: str) -> set[str]:
    return {word for word in _SUBJECT.findall(line[:MAX_LINE]) if _TIME.match(word) is None}
