"""Functions of NCCL and RCCL in stack traces: glibc's and UCX' backtrace, py-spy's, gdb's, lldb's, Abseil's and glog's.

SOURCE: the forms of these tools; NCCL src/init.cc (commReclaim, commCleanup, commFree), src/proxy.cc, src/ras/.
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.numbers import compiled

_FRAME = compiled(
    r"lib[nr]ccl[\w.\-]{0,40}\((\w{2,100})\+0x"
    r"|\b(\w{2,100}) \([^\s()]{0,200}?lib[nr]ccl\.so(?:\.(\d{1,2}\.\d{1,2}\.\d{1,2}))?\)"
    r"|0x[0-9a-f]{6,16} ?(ras\w{2,80}|(?:n|ms)ccl\w{2,80}) ?\(\)"
    r"|@ {1,16}0x[0-9a-f]{6,16} {1,16}(?:(?:\(unknown\)|\d{1,9}) {1,16})?"
    r"(ras[A-Z]\w{1,80}|(?:n|ms)ccl\w{2,80}|SaveProxy)\b"
    r"|^\s{0,8}#\d{1,3} {1,4}(?:0x[0-9a-f]{6,18} in )?(ras[A-Z]\w{1,80}|(?:n|ms)ccl\w{2,80}|SaveProxy) ?\("
    r"|^\s{0,8}(ras[A-Z]\w{1,80}|(?:n|ms)ccl\w{2,80}|SaveProxy)\([^()]{0,400}\) \(lib[nr]ccl\.so"
    r"|\blib[nr]ccl\.so[.\d]{0,12}`(\w{2,100})"
    r"|^\s{0,8}#\d{1,3} {1,4}(?:0x[0-9a-f]{6,18} in )?(\w{2,100})(?:\([^()]{0,200}\))? \([^()]{0,400}\) from "
    r"\S{0,200}\blib[nr]ccl\.so"
    r"|^\s{0,8}(comm(?:Reclaim|Cleanup|Free)) \((?:src/)?init\.cc:\d{1,6}\)"
)
_LIBRARY = 3
"""The group that holds the version in the library's file name; each other one is a function."""
WORDS = (
    b"libnccl",
    b"librccl",
    b"0x00000",
    b" in nccl",
    b" in msccl",
    b"  msccl",
    b" in ras",
    b" in SaveProxy",
    b"  nccl",
    b"init.cc:",
)
"""A line without any of these is none of theirs."""


def frame_of(text: str) -> tuple[str, str] | None:
    """Function and version of the library, "" where the line has none; None for all other lines."""
    found = _FRAME.search(text)
    if found is None:
        return None
    symbol = next((name for at, name in enumerate(found.groups(), 1) if name and at != _LIBRARY), "")
    return symbol, found[_LIBRARY] or ""
