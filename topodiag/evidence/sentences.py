"""Sources whose texts tell events and nothing else: what failed, by the word of whoever looked."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.model.system import KernelEvent

MAX_LINE = 4096


def event(kind: str, text: str, blob: Blob, number: int, line: str) -> KernelEvent:
    """An event that no kernel logged, told by the line with this number."""
    return KernelEvent(kind, text, blob.origin(number, line), of_log=False)


@dataclass(frozen=True, slots=True)
class Together:
    """What several lines say together: which fault, the number of the line that shows it, and words."""

    fault: str
    number: int
    words: str


class Telling(Source[KernelEvent]):
    """A source whose records are events of the node."""

    def fill(self, blob: Blob, parsed: Parsed[KernelEvent], draft: NodeDraft) -> None:
        draft.events.extend(parsed.records)


class Sentences(Telling):
    """One of which each line counts by itself."""

    most: ClassVar[int] = 200
    """Events that are kept of one text."""
    once: ClassVar[bool] = False
    """Whether a sentence that comes again says nothing new."""

    @abstractmethod
    def event_of(self, line: str) -> tuple[str, str] | None:
        """Kind and text of the event that a line tells of, None for one that tells of none."""

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed()
        seen: set[tuple[str, str]] = set()
        for number, line in blob.lines():
            parsed.lines = number
            said = self.event_of(line[:MAX_LINE]) if len(parsed.records) < self.most else None
            if said is None or (self.once and said in seen):
                continue
            seen.add(said)
            parsed.records.append(event(*said, blob, number, line))
        return parsed
