"""The reader of last resort: of a text that nothing else takes, the lines that say themselves that a part is at fault.

It makes no fact of the node. Each line becomes an event: of the fault that its part and its state name together, which
`checks/reported.py` makes a finding of low confidence of, else of the kind `told`, which no check judges and which
stands beside the findings as a line that nothing explains.
"""

from __future__ import annotations

import re

from topodiag.evidence.host.siblings_apart import odd_ones
from topodiag.evidence.host.told import told_of
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import Sentences, event
from topodiag.model.system import TOLD, TOLD_OF, KernelEvent
from topodiag.model.topics import Topic

MOST_CHARS = 1 << 15
"""A longer text is a log, and nobody's words."""
SPOKEN = frozenset({"acs", "iommu", "peermem", "shm", "memlock", "gpu-shared", "port-count"})
_NAMED = re.compile(
    r"\bACS\b|Access Control|Redir|IOMMU|VT-d|peer|GPU ?Direct|\bGDR\b|shm|shared|mem_?lock|locked|ulimit|adapter"
    r"|\bNICs?\b|HCA"
    r"|mlx[45]_|(?:RDMA|IB|InfiniBand|EFA|RoCE) (?:dev|card|if)|rdmap|ConnectX|\bidle\b|process|used by|in use|held by",
    re.IGNORECASE,
)
"""Cheap to search for, and in every line that speaks of one of these parts."""
_OF_A_TOOL = re.compile(r"\bDMAR\b|\bAMD-Vi\b|\biommu: |\bNCCL\b|\[drm|\bNVRM\b|\bACS(?:Ctl|Cap)\b")
"""Lines of the kernel and of NCCL have readers that know what they mean."""


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


class SpokenParts(LastResort):
    """The same beside other readers, of the parts alone that no output of a tool shows well: people and scripts say
    them, and the readers of the outputs around such a line do not see it."""

    kind = "spoken-parts"
    trust = 10

    def recognises(self, head: str) -> bool:
        return len(head) < MOST_CHARS and any(self.event_of(line) is not None for line in head.split("\n"))

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        return Sentences.parse(self, blob)

    def event_of(self, line: str) -> tuple[str, str] | None:
        if " NCCL " in line or _NAMED.search(line) is None or _OF_A_TOOL.search(line) is not None:
            return None
        said = super().event_of(line)
        return said if said is not None and said[0].removeprefix(TOLD_OF) in SPOKEN else None
