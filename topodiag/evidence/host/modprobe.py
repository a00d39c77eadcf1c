"""`modprobe` and `insmod` of a module that RDMA with GPU memory needs, and that does not load.

    modprobe: ERROR: could not insert 'nv_peer_mem': Invalid argument
    modprobe: FATAL: Module nvidia_peermem not found in directory /lib/modules/6.8.0-90-generic
    insmod: ERROR: could not insert module nvidia-peermem.ko: Unknown symbol in module

Format: kmod 20 to 33 (tools/modprobe.c, tools/insmod.c).
"""

from __future__ import annotations

import re

from topodiag.evidence.sentences import Sentences
from topodiag.model.system import REPORTED
from topodiag.model.topics import Topic

_FAILED = re.compile(
    r"\b(?:modprobe|insmod): (?:ERROR|FATAL): (?:could not insert (?:module )?|Module )['\"]?(?:\S{0,200}/)?"
    r"(nv_peer_mem|nvidia[-_]peermem)(?:\.ko\w{0,3})?['\"]?(?:: | not found)"
)


class Modprobe(Sentences):
    """The peer memory module of the NVIDIA driver where the kernel does not take it."""

    kind = "modprobe"
    speaks_of = frozenset({Topic.OS})
    trust = 50
    a_piece = "it says what failed"

    def recognises(self, head: str) -> bool:
        return "peer" in head and _FAILED.search(head) is not None

    def event_of(self, line: str) -> tuple[str, str] | None:
        return (f"{REPORTED}peermem", line.strip()[:200]) if _FAILED.search(line) is not None else None
