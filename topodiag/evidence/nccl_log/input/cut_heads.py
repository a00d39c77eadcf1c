"""Excerpts whose lines were cut so far that the word NCCL went with the head: `cut -c`, a column of a table, a chat.

    INFO NET/IB : No device found.
    NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
    Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0

Only short texts are mended, and only those in which NCCL's word stands nowhere: the lines that nobody else prints get
it back. Lines keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topodiag.lazy import regex

_MESSAGE = (
    rb"(?:NET/(?:IB|Socket|OFI|Plugin|UCX)\s{0,2}: (?!Got completion)|NET/OFI [A-Z]"
    rb"|Channel \d{1,4}(?:/\d{1,4})? : \d{1,7}(?:\[| {1,4}\d)"
    rb"|Using network [A-Z]|Bootstrap\s{0,2}: Using |Connected all (?:rings|trees)|Trees \[0\] "
    rb"|GPU Direct RDMA (?:Dis|En)abled|comm 0x[0-9a-f]{4,16} rank \d)"
)
"""What no program but NCCL prints. Its completion errors are read without its word anyway (grammar/job_lines.py)."""
_CUT = regex(
    rb"^[ \t>|]{0,20}(?:(?:N?C?C?L )?(?:\[\d{1,4}\] )?(?:N?C?C?L )?(INFO|WARN) |(?:\d{1,9} )?\[\d{1,4}\] )?(?="
    + _MESSAGE
    + rb")",
    re.MULTILINE,
)
_LEVEL = regex(rb"NCCL (?:INFO|WARN|ATTN|TRACE|CALL|ABORT)")


def looks_cut(text: bytes) -> bool:
    """Whether lines of NCCL stand in a short text without its word. `text` is all of it."""
    return _LEVEL.search(text) is None and _CUT.search(text) is not None


def with_heads(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The text with NCCL's word before its lines. It is short: `looks_cut` is asked of short texts only."""
    yield _CUT.sub(lambda found: b"NCCL " + (found[1] or b"INFO") + b" ", b"".join(blocks))


__all__ = ["looks_cut", "with_heads"]
