"""Programs that cannot register the memory of a GPU for RDMA: neither a peer memory module nor DMA-BUF takes it.

    ib_md.c:309  UCX  ERROR ibv_reg_mr(address=0x7fb2c4000000, length=8388608, access=0xf) failed: Bad address
    Failed to register memory 0x7f02c0000000: Bad address [14]
    ibrc.cpp:nvshmemt_init:1851: neither nv_peer_mem, or nvidia_peermem detected. Skipping transport.
    DMA BUF supported required for GPU RDMA without nvidia-peermem
    cuMemAlloc() of a 131072 bytes GPU buffer ... Couldn't allocate MR

The kernel pins pages of the host for a registration: an address that is none of them is a bad address (EFAULT), unless
a module knows it as a GPU's. SOURCE: ib_umem_get of Linux drivers/infiniband/core/umem.c; perftest src/
perftest_resources.c; NVSHMEM src/modules/transport/ibrc; UCX src/uct/ib/base/ib_md.c; Mooncake rdma_context.cpp.
"""

from __future__ import annotations

import re
from itertools import pairwise

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.pasted_files import LOOSE_PROMPT
from topodiag.evidence.sentences import MAX_LINE, Sentences
from topodiag.model.system import REPORTED, KernelEvent
from topodiag.model.topics import Topic

_REFUSED = re.compile(
    r"(?:(?:\b|_)reg\w{0,4}_mr|\b[Rr]eg(?:ister|istering|istration)?(?: (?:of )?\w{1,16}){0,4} (?:memory|buffers?"
    r"|address|MRs?|region)"
    r"|\bmemory registration)\b.{0,200}?(?:\bBad address\b|\bEFAULT\b|\berrno[ =:]{1,3}14\b)"
)
_SPEAKS = re.compile(r"Bad address|EFAULT|no[ =:]{1,3}14|peer[ _-]?mem|dma[ _-]?buf", re.IGNORECASE)
"""A text without any of these tells of no refusal in one line."""
_OF_GPU = re.compile(
    r"\bGPU buffer\b|\b(?:cuMemAlloc|cudaMalloc|hipMalloc|cuMemGetHandle)|--use_(?:cuda|rocm|hl)\b|\bCUDA_MEM_DEVICE\b"
    r"|\bVRAM is used\b"
)
_NO_REGION = re.compile(
    r"\b(?:[Cc]ould ?n[o']t|[Cc]annot|[Cc]an't|[Ff]ailed to|[Uu]nable to) (?:allocate|create|register|reg) "
    r"(?:an? |the )?(?:MRs?|mr|memory regions?)\b"
    r"|\bibv_reg_(?:dmabuf_)?mr\w{0,12}(?:\(\))?:? (?:call )?(?:has )?failed\b"
)
_NO_ROOM = re.compile(r"Cannot allocate memory|\bENOMEM\b|\berror[ =:]{1,3}-?12\b")
"""A limit of locked memory refuses a buffer of the host and one of a GPU alike."""
_PROMPT = re.compile(rf"^{LOOSE_PROMPT}\S", re.MULTILINE)
_IF = re.compile(r"\b(?:[Ii]f|[Ww]hen|[Ww]here|[Uu]nless|[Ss]hould)\b")

_WAY = r"(?:dma[ _-]?buf|(?:nvidia|nv|ib|amd)[ _-]peer[ _-]?mem(?:ory)?|peer[ _-]?mem)"
_WAYS = re.compile(rf"\b{_WAY}\b", re.IGNORECASE)
_LACKS = (
    rf"\b{_WAY}(?: \w{{1,12}}){{0,2}} (?:is |are |was )?(?:not (?:\w{{1,12}} )?(?:loaded|running|found|detected"
    r"|available|supported|installed|enabled|present)|missing|unavailable|unsupported)\b"
)
_WITHOUT_BOTH = re.compile(
    rf"\bneither {_WAY},? n?or {_WAY}\b|{_LACKS}.{{1,40}}{_LACKS}|\bno {_WAY} (?:and|or) no {_WAY}\b", re.IGNORECASE
)
"""Where both ways are told to lack, nothing is left: that needs no level of a log."""
_WANTED = re.compile(
    rf"\b{_WAY}(?: \w{{1,12}}){{0,3}} (?:is |are )?(?:required|needed)\b"
    rf"|\b(?:requires?|needs?) (?:\w{{1,12}} ){{0,3}}{_WAY}\b"
    rf"|{_LACKS}|\b(?:no|neither|without|missing) {_WAY}\b",
    re.IGNORECASE,
)
_MEANT = re.compile(r"\bGPU[ -]?Direct\b|\bGDR\b|\bGPU RDMA\b|\bRDMA\b|\b[Rr]egist", re.IGNORECASE)
_FAILS = re.compile(
    r"^[EF]\d{4,8} |\b(?:ERROR|FATAL|CRITICAL)\b|\b\w{1,30}(?:Error|Exception): |(?:^|[\s\]:])[Ee]rror: |\bNVLOGE\b"
)
"""How loggers say that something cannot go on: a level, or an exception."""
_ELSE = re.compile(
    r"\bnot (?:\w{1,12} )?(?:required|needed|necessary)\b|\bwithout needing\b|\b(?:us(?:e|es|ing)|try(?:ing)?"
    rf"|fall(?:ing|s)?|continu(?:e|ing)|proceed(?:ing)?|switch(?:ing)?)\b.{{0,40}}\b{_WAY}\b|\?",
    re.IGNORECASE,
)
"""Of two ways the other one is taken, or nobody needs this one."""


class GpuRegistration(Sentences):
    """Registrations of GPU memory that the kernel refuses, each sentence once."""

    kind = "rdma-registration"
    speaks_of = frozenset({Topic.OS})
    trust = 50
    once = True
    a_piece = "it says what failed"

    def recognises(self, head: str) -> bool:
        if _SPEAKS.search(head) is not None and any(
            self.event_of(line[:MAX_LINE]) is not None for line in head.split("\n")
        ):
            return True
        return _of_a_test(head) is not None

    def event_of(self, line: str) -> tuple[str, str] | None:
        found = _REFUSED.search(line) or _WITHOUT_BOTH.search(line)
        if found is None and _FAILS.search(line) is not None:
            found = _unmet(line)
        if found is None or _IF.search(line[: found.start()]) is not None:
            return None
        return f"{REPORTED}registration", " ".join(line.split())[:200]

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed = super().parse(blob)
        if not parsed.records and (refused := _of_a_test(blob.text)) is not None:
            number = blob.text.count("\n", 0, refused.start()) + 1
            text = f"{refused[0]} (a buffer of a GPU)"
            parsed.records.append(
                KernelEvent(f"{REPORTED}registration", text, blob.origin(number, refused[0]), of_log=False)
            )
        return parsed


def _unmet(line: str) -> re.Match[str] | None:
    """Where a line that reports a failure says that RDMA of a GPU's memory lacks its peer memory module or DMA-BUF."""
    found = _WANTED.search(line)
    if found is None or _ELSE.search(line) is not None:
        return None
    return found if _MEANT.search(line) is not None or len(_WAYS.findall(line)) > 1 else None


def _of_a_test(text: str) -> re.Match[str] | None:
    """Where a program could not register its buffer, which it says, below the same command, is a GPU's."""
    if not any(word in text for word in ("MR", "mr", "memory region")):  # most texts: the pattern reads each letter
        return None
    if _NO_REGION.search(text) is None or _NO_ROOM.search(text) is not None:
        return None
    begins = [0, *(prompt.start() for prompt in _PROMPT.finditer(text)), len(text)]
    for begin, end in pairwise(begins):
        refused = _NO_REGION.search(text, begin, end)
        if refused is not None and _OF_GPU.search(text, begin, end) is not None:
            return refused
    return None
