"""The reader of last resort: of a text that nothing else takes, the lines that say themselves that a part is at fault.

It makes no fact of the node. Each line becomes an event: of the fault that its part and its state name together, which
`checks/reported.py` makes a finding of low confidence of, else of the kind `told`, which no check judges and which
stands beside the findings as a line that nothing explains.
"""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.part_states import MAX_LINE, said_of
from topodiag.evidence.host.shortfalls import short_of
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.model.system import TOLD, TOLD_OF, KernelEvent
from topodiag.model.topics import Topic

MAX_TOLD = 50
"""Lines kept: a text that says more is a log of some program, and its first lines name what began it."""


class LastResort(Source[KernelEvent]):
    """Lines of any tool that say that a part is in a state that is a fault."""

    kind = "any-tool"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 10

    def told(self, parsed: Parsed[KernelEvent]) -> frozenset[Topic]:
        """Nothing: whose text it is, and of what, nobody knows."""
        return frozenset()

    def recognises(self, head: str) -> bool:
        return any(_event_of(line) is not None for line in head.split("\n"))

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed(partial=True)
        for number, line in blob.lines():
            parsed.lines = number
            said = _event_of(line) if len(parsed.records) < MAX_TOLD else None
            if said is not None:
                parsed.records.append(KernelEvent(*said, blob.origin(number, line), of_log=False))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[KernelEvent], draft: NodeDraft) -> None:
        draft.events.extend(parsed.records)


def _event_of(line: str) -> tuple[str, str] | None:
    """Kind and text of the event that a line tells of."""
    said = said_of(line) if (short := short_of(line[:MAX_LINE])) is None else short
    text = " ".join(line.split())[:300]
    if said is None:
        return None
    return (f"{TOLD_OF}{said.fault}", text) if said.fault else (TOLD, f"{said.part}, {said.state!r}: {text}")
