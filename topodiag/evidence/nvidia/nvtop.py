"""`nvtop` as people paste it: the line of each GPU, with the PCIe link as it is at that moment.

    Device 0 [NVIDIA A100-SXM4-80GB] PCIe GEN 4@16x RX: 1.953 MiB/s TX: 976.6 KiB/s

A GPU without work rests its link at a lower generation. Format: nvtop 1.0 to 3.1 (src/interface.c, draw_devices).
"""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import unplaced
from topodiag.model.topics import Topic

MAX_LINE = 400
MAX_INDEX = 255
_DEVICE = regex(r"\s{0,20}Device ([0-9]{1,3}) {1,4}\[([^\]\n]{2,80})\] {1,8}PCIe GEN ?([1-7])@ ?([0-9]{1,2})x(?=\s|$)")


@dataclass(frozen=True, slots=True)
class ShownGpu:
    """A GPU by nvtop's number, and its link."""

    index: int
    name: str
    gen: int
    width: int
    line: int
    text: str


class Nvtop(Source[ShownGpu]):
    """GPUs and their PCIe links by `nvtop`."""

    kind = "nvtop"
    speaks_of = frozenset({Topic.GPUS})
    trust = 40

    def recognises(self, head: str) -> bool:
        return "PCIe GEN" in head and any(_DEVICE.match(line[:MAX_LINE]) for line in head.split("\n"))

    def parse(self, blob: Blob) -> Parsed[ShownGpu]:
        parsed: Parsed[ShownGpu] = Parsed()
        for number, text in blob.lines():
            parsed.lines = number
            found = _DEVICE.match(text[:MAX_LINE])
            if found is not None and int(found[1]) <= MAX_INDEX and 1 <= int(found[4]) <= 32:
                shown = ShownGpu(int(found[1]), found[2].strip(), int(found[3]), int(found[4]), number, text.strip())
                parsed.records.append(shown)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[ShownGpu], draft: NodeDraft) -> None:
        for shown in parsed.records:
            origin = blob.origin(shown.line, shown.text)
            draft.gpu(index=shown.index).offer("name", shown.name, origin)
            link = draft.pci(unplaced(shown.index))
            link.offer("gen", shown.gen, origin)
            link.offer("width", shown.width, origin)


__all__ = ["Nvtop", "ShownGpu"]
