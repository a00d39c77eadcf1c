"""`modprobe` and `insmod` of a module that RDMA with GPU memory needs, and that does not load.

    modprobe: ERROR: could not insert 'nv_peer_mem': Invalid argument
    modprobe: FATAL: Module nvidia_peermem not found in directory /lib/modules/6.8.0-90-generic
    insmod: ERROR: could not insert module nvidia-peermem.ko: Unknown symbol in module
    nv_peer_mem: disagrees about version of symbol ib_register_peer_memory_client        dmesg

Format: kmod 20 to 33 (tools/modprobe.c, tools/insmod.c).
"""

from __future__ import annotations

import re

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import Sentences
from topodiag.model.system import REPORTED, TOLD_OF, KernelEvent
from topodiag.model.topics import Topic

_FAILED = re.compile(
    r"\b(?:modprobe|insmod): (?:ERROR|FATAL): (?:could not insert (?:module )?|Module )['\"]?(?:\S{0,200}/)?"
    r"(nv_peer_mem|nvidia[-_]peermem)(?:\.ko\w{0,3})?['\"]?(?:: | not found)"
)
_SYMBOLS = re.compile(
    r"\b(?:nv_peer_mem|nvidia[-_]peermem): (?:disagrees about version of symbol|Unknown symbol)"
    r" ib_(?:un)?register_peer_memory_client\b"
)
"""What the kernel says of it (kernel/module/version.c, main.c): it was built for other RDMA modules than those that
run. At boot it may be loaded in the end, which lsmod shows."""
_LOADED = re.compile(r"^(?:nv_peer_mem|nvidia_peermem) {1,40}\d{4,9} {1,8}\d", re.MULTILINE)
"""A row of lsmod."""


class Modprobe(Sentences):
    """The peer memory module of the NVIDIA driver where the kernel does not take it."""

    kind = "modprobe"
    speaks_of = frozenset({Topic.OS})
    trust = 50
    a_piece = "it says what failed"

    def recognises(self, head: str) -> bool:
        return "peer" in head and (_FAILED.search(head) is not None or _SYMBOLS.search(head) is not None)

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed = super().parse(blob)
        if _LOADED.search(blob.text) is not None:
            parsed.records[:] = [each for each in parsed.records if not each.kind.startswith(TOLD_OF)]
        return parsed

    def event_of(self, line: str) -> tuple[str, str] | None:
        if _FAILED.search(line) is not None:
            return f"{REPORTED}peermem", line.strip()[:200]
        return (f"{TOLD_OF}peermem", line.strip()[:200]) if _SYMBOLS.search(line) is not None else None
