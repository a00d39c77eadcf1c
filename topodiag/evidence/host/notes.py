"""What a person or a script writes between the outputs of commands: lines that say that a part is at fault.

The outputs are read by the readers of their tools; these read no prose. A line counts where it reads as a sentence, and
where part and state stand in it together, as in a text of no known kind (`told`). Of parts that no output of a tool
shows well (access control, IOMMU, limits, peer memory) a line of a script counts, too.
"""

from __future__ import annotations

import re

from topodiag.evidence.host.part_states import MAX_LINE
from topodiag.evidence.host.told import told_of
from topodiag.evidence.sentences import Sentences
from topodiag.model.system import TOLD_OF
from topodiag.model.topics import Topic

MAX_CHARS = 16_000
MAX_LINES = 200
"""Of a larger text the sentences are a program's."""
FEWEST_WORDS = 6
_COMMON = frozenset(
    [
        "the",
        "a",
        "an",
        "is",
        "was",
        "are",
        "were",
        "it",
        "its",
        "on",
        "at",
        "and",
        "with",
        "while",
        "since",
        "after",
        "we",
        "our",
        "this",
        "that",
        "only",
        "all",
        "one",
        "but",
        "in",
        "to",
        "from",
        "every",
        "again",
        "whatever",
        "of",
        "has",
        "had",
        "have",
        "then",
        "when",
        "they",
        "no",
        "not",
        "so",
        "there",
    ]
)
_LINE = re.compile(
    r"(?!(?:Failed|Unable|Error|Warning|Cannot|Could not|NVML|fabric manager|Please|Note that)\b)"
    r"[A-Za-z][^|{}<>$`]{20,}\Z"
)
_OF_PROGRAM = re.compile(
    r"\bNCCL\b .{0,4}(?:INFO|WARN)|kernel:|NVRM|Traceback|Error\b:|\b(?:ERROR|WARN(?:ING)?|INFO|DEBUG)\b|://|\d\d:\d\d:\d\d"
    r"|_core |GPU \d{1,3}'s NvLink|\.(?:py|cc|cpp|c):\d"
)

SPOKEN = frozenset({"acs", "iommu", "peermem", "shm", "memlock", "gpu-shared", "port-count"})
_SPEAKS = re.compile(
    r"\bACS\b|Access Control|Redir|IOMMU|VT-d|peer|GPU ?Direct|\bGDR\b|shm|shared|mem_?lock|locked|ulimit|adapter"
    r"|\bNICs?\b|HCA"
    r"|mlx[45]_|(?:RDMA|IB|InfiniBand|EFA|RoCE) (?:dev|card|if)|rdmap|ConnectX|\bidle\b|process|used by|in use|held by",
    re.IGNORECASE,
)
"""Cheap to search for, and in every line that speaks of one of these parts."""
_OF_A_TOOL = re.compile(r"\bDMAR\b|\bAMD-Vi\b|\biommu: |\bNCCL\b|\[drm|\bNVRM\b|\bACS(?:Ctl|Cap)\b")
"""Lines of the kernel and of NCCL have readers that know what they mean."""


class Notes(Sentences):
    """Lines of a person or a script that name a part and its fault."""

    kind = "notes"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 10
    most = 20
    once = True
    a_piece = "the words of whoever wrote them"

    def recognises(self, head: str) -> bool:
        if len(head) > MAX_CHARS or head.count("\n") > MAX_LINES:
            return False
        return any(self.event_of(line) is not None for line in head.split("\n"))

    def event_of(self, line: str) -> tuple[str, str] | None:
        text = line.strip(" \t>#*-")
        sentence = is_sentence(text[:MAX_LINE])
        if not sentence and (_SPEAKS.search(line[:MAX_LINE]) is None or _OF_A_TOOL.search(line[:MAX_LINE]) is not None):
            return None
        said = told_of(text if sentence else line)
        if said is None or not said.fault or not (sentence or said.fault in SPOKEN):
            return None
        return f"{TOLD_OF}{said.fault}", " ".join(line.split())[:300]


def is_sentence(text: str) -> bool:
    """Whether a line reads as somebody's sentence: words, and among them those that join others."""
    if _LINE.match(text) is None or _OF_PROGRAM.search(text) is not None:
        return False
    words = re.findall(r"[A-Za-z']+", text)
    return len(words) >= FEWEST_WORDS and sum(word.lower() in _COMMON for word in words) >= 2


__all__ = ["Notes", "is_sentence"]
