"""Programs that cannot register the memory of a GPU for RDMA: neither a peer memory module nor DMA-BUF takes it.

    ib_md.c:309  UCX  ERROR ibv_reg_mr(address=0x7fb2c4000000, length=8388608, access=0xf) failed: Bad address
    Failed to register memory 0x7f02c0000000: Bad address [14]
    ibrc.cpp:nvshmemt_init:1851: neither nv_peer_mem, or nvidia_peermem detected. Skipping transport.
    cuMemAlloc() of a 131072 bytes GPU buffer ... Couldn't allocate MR

The kernel pins pages of the host for a registration: an address that is none of them is a bad address (EFAULT), unless
a module knows it as a GPU's. SOURCE: ib_umem_get of Linux drivers/infiniband/core/umem.c; perftest src/
perftest_resources.c; NVSHMEM src/modules/transport/ibrc; UCX src/uct/ib/base/ib_md.c; Mooncake rdma_context.cpp.
"""

from __future__ import annotations

import re

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import MAX_LINE, Sentences
from topodiag.model.system import REPORTED, KernelEvent
from topodiag.model.topics import Topic

_REFUSED = re.compile(
    r"(?:(?:\b|_)reg\w{0,4}_mr|\b[Rr]eg(?:ister|istering|istration)?(?: (?:of )?\w{1,16}){0,4} (?:memory|buffers?"
    r"|address|MRs?|region)"
    r"|\bmemory registration)\b.{0,200}?(?:\bBad address\b|\bEFAULT\b|\berrno[ =:]{1,3}14\b)"
)
_NEITHER = re.compile(r"\bneither nv_peer_mem,? (?:or|nor) nvidia_peermem detected\b")
_OF_GPU = re.compile(r"\bGPU buffer\b|\b(?:cuMemAlloc|hipMalloc|cuMemGetHandle)|--use_(?:cuda|rocm)\b")
_NO_REGION = re.compile(r"Couldn't allocate MR\b|\b[Ff]ailed to create (?:mr|MR)\b")
_IF = re.compile(r"\b[Ii]f\b|\b[Ww]hen\b")


class GpuRegistration(Sentences):
    """Registrations of GPU memory that the kernel refuses, each sentence once."""

    kind = "rdma-registration"
    speaks_of = frozenset({Topic.OS})
    trust = 50
    once = True
    a_piece = "it says what failed"

    def recognises(self, head: str) -> bool:
        if "Bad address" in head or "EFAULT" in head or "peermem" in head or "no 14" in head or "no=14" in head:
            return any(self.event_of(line[:MAX_LINE]) is not None for line in head.split("\n"))
        return "MR" in head and _of_a_test(head) is not None

    def event_of(self, line: str) -> tuple[str, str] | None:
        found = _REFUSED.search(line) or _NEITHER.search(line)
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


def _of_a_test(text: str) -> re.Match[str] | None:
    """Where a test of perftest could not register its buffer, which it says is a GPU's."""
    return _NO_REGION.search(text) if _OF_GPU.search(text) is not None else None
