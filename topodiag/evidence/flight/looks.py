"""Whether a file is a dump of torch's flight recorder, by its first bytes."""

from __future__ import annotations

from topodiag.lazy import regex

PICKLED = regex(rb"\x80[\x02-\x05]")
_KEYS = (b"pg_config", b"pg_status", b"nccl_version", b"collective_seq_id", b"entries")
_JSON = regex(rb'"(?:pg_config|pg_status)"\s*:\s*\{|"(?:collective_seq_id|p2p_seq_id)"\s*:\s*\d')


def looks_like_flight(head: bytes) -> bool:
    """Whether a file that starts like this is a dump: a pickle or JSON with keys of the format. Its name says nothing:
    TORCH_FR_DUMP_TEMP_FILE sets it."""
    if PICKLED.match(head):
        return any(key in head for key in _KEYS)
    return head.lstrip()[:1] == b"{" and _JSON.search(head) is not None
