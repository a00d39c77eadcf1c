"""The sentence that nvidia-smi prints in place of a report when a GPU does not answer. Every option can print it.

Unable to determine the device handle for GPU4: 00000000:9D:00.0: GPU is lost.  Reboot the system to recover this GPU
Unable to determine the device handle for GPU 0000:1A:00.0: Unknown Error
"""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id

_BUS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
LOST = regex(
    rf"Unable to determine the device handle for (?:gpu|GPU) ?(?:([0-9]{{1,3}}): ?)?({_BUS}): {{0,2}}"
    r"(GPU is lost|GPU requires reset|Unknown Error|Not Found)"
)
MAX_LINE = 1000


@dataclass(frozen=True, slots=True)
class LostGpu:
    """One such sentence: the GPU by index and bus id as far as they are named, the tool's words, and the line."""

    index: int | None
    bus_id: str
    words: str
    line: int
    text: str


def lost_gpus(blob: Blob) -> Iterator[LostGpu]:
    """Every GPU that the text says does not answer."""
    if b"Unable to determine the device handle" not in blob.data:
        return
    for number, line in blob.lines():
        match = LOST.search(line[:MAX_LINE])
        bus_id = normalise_bus_id(match[2]) if match is not None else None
        if match is not None and bus_id is not None:
            yield LostGpu(int(match[1]) if match[1] else None, bus_id, match[3], number, line)


def fill_lost(blob: Blob, draft: NodeDraft) -> bool:
    """Offer what the text says of lost GPUs; whether it says so of any."""
    found = list(lost_gpus(blob))
    for each in found:
        entity = draft.gpu(index=each.index, bus_id=each.bus_id)
        entity.offer("lost", each.words, blob.origin(each.line, each.text))
    return bool(found)
