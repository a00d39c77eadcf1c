"""`modprobe` and `insmod` of a module that RDMA with GPU memory needs, and that does not load.

    modprobe: ERROR: could not insert 'nv_peer_mem': Invalid argument
    modprobe: FATAL: Module nvidia_peermem not found in directory /lib/modules/6.8.0-90-generic
    insmod: ERROR: could not insert module nvidia-peermem.ko: Unknown symbol in module

Format: kmod 20 to 33 (tools/modprobe.c, tools/insmod.c).
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.model.system import REPORTED, KernelEvent
from topodiag.model.topics import Topic

MAX_LINE = 1000
_FAILED = re.compile(
    r"\b(?:modprobe|insmod): (?:ERROR|FATAL): (?:could not insert (?:module )?|Module )['\"]?(?:\S{0,200}/)?"
    r"(nv_peer_mem|nvidia[-_]peermem)(?:\.ko\w{0,3})?['\"]?(?:: | not found)"
)


class Modprobe(Source[KernelEvent]):
    """The peer memory module of the NVIDIA driver where the kernel does not take it."""

    kind = "modprobe"
    speaks_of = frozenset({Topic.OS})
    trust = 50

    def told(self, parsed: Parsed[KernelEvent]) -> frozenset[Topic]:
        """Nothing as a whole: it says what failed."""
        return frozenset()

    def recognises(self, head: str) -> bool:
        return "peer" in head and _FAILED.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed()
        for number, line in blob.lines():
            parsed.lines = number
            if _FAILED.search(line[:MAX_LINE]) is not None:
                kind = f"{REPORTED}peermem"
                parsed.records.append(KernelEvent(kind, line.strip()[:200], blob.origin(number, line), of_log=False))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[KernelEvent], draft: NodeDraft) -> None:
        draft.events.extend(parsed.records)
