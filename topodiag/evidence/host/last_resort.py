"""The reader of last resort: of a text that nothing else takes, the lines that say themselves that a part is at fault.

It makes no fact of the node. Each line becomes an event: of the fault that its part and its state name together, which
`checks/reported.py` makes a finding of low confidence of, else of the kind `told`, which no check judges and which
stands beside the findings as a line that nothing explains.
"""

from __future__ import annotations

from topodiag.evidence.host.siblings_apart import odd_ones
from topodiag.evidence.host.told import told_of
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import Sentences, event
from topodiag.model.system import TOLD, TOLD_OF, KernelEvent
from topodiag.model.topics import Topic


class LastResort(Sentences):
    """Lines of any tool that say that a part is in a state that is a fault, or show it below its siblings."""

    kind = "any-tool"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 10
    most = 50  # a text that says more is a log of some program, and its first lines name what began it
    a_piece = "whose text it is, and of what, nobody knows"

    def recognises(self, head: str) -> bool:
        return any(self.event_of(line) is not None for line in head.split("\n")) or bool(odd_ones(head))

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed = super().parse(blob)
        told = {record.kind for record in parsed.records}
        for odd in odd_ones(blob.text) if len(parsed.records) < self.most else ():
            if f"{TOLD_OF}{odd.fault}" not in told:
                parsed.records.append(event(f"{TOLD_OF}{odd.fault}", odd.said, blob, odd.line, odd.text))
        return parsed

    def event_of(self, line: str) -> tuple[str, str] | None:
        said = told_of(line)
        text = " ".join(line.split())[:300]
        if said is None:
            return None
        return (f"{TOLD_OF}{said.fault}", text) if said.fault else (TOLD, f"{said.part}, {said.state!r}: {text}")
