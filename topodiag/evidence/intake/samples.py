"""Two readings of the same counters among pasted texts: `before.txt` and `after.txt`, or one command twice in one text.

Counters run since boot, so one reading says little. Two texts are two moments only where their names say so: two texts
alike may be of two nodes as well. A command that stands twice in one text was run twice, alone on its line or after
others (`sleep 60; date; grep ...`), unless its prompts name two hosts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from topodiag.evidence.interface import Blob
from topodiag.evidence.signatures.literals import finder
from topodiag.lazy import regex

_EARLIER = frozenset({"before", "pre", "start", "begin", "baseline", "t0", "first"})
_LATER = frozenset({"after", "post", "end", "finish", "t1", "later", "second"})
_WORD = regex(r"[a-z]+[0-9]?|[0-9]+", re.IGNORECASE)
_RUN = regex(
    r"^[ \t>|]{0,8}([^\n$#]{0,80})[$#] ?(?:[^\n;&|]{1,80}(?:;|&&) ?){0,4}(?:sudo )?((?:ethtool (?:-S|--statistics)"
    r"|(?:grep|cat|head|tail) [^\n]{0,200}counters/|rdma (?:-[a-z]{1,3} )?stat"
    r"|perfquery|ibqueryerrors|nvidia-smi nvlink -e|curl [^\n]{0,200}/metrics)[^\n]{0,300}?)[ \t]*$",
    re.MULTILINE,
)
_COMMANDS = finder((b"ethtool", b"counters/", b"rdma ", b"perfquery", b"ibqueryerrors", b"nvlink", b"/metrics"))
"""Each command of _RUN holds one of these."""
_HOST = regex(r"@([A-Za-z0-9][A-Za-z0-9.-]{0,63})")
"""The host in a prompt: `root@node-7:~`, `[root@node-7 ~]`."""


def as_samples(blobs: Sequence[Blob]) -> list[Blob]:
    """The texts of one node, the later reading of each pair marked as such."""
    parted = [part for blob in blobs for part in _parted(blob)]
    earlier = {stem for blob in blobs if (stem := _stem(blob.name, _EARLIER)) is not None}
    return [replace(blob, later=True) if _stem(blob.name, _LATER) in earlier else blob for blob in parted]


def _stem(name: str, words: frozenset[str]) -> str | None:
    """The file's name with its word of time taken out; None where it has none of these."""
    base = os.path.basename(name)
    for match in _WORD.finditer(base):
        if match[0].lower() in words:
            return f"{os.path.dirname(name)}/{base[: match.start()]}*{base[match.end() :]}"
    return None


def _parted(blob: Blob) -> Iterator[Blob]:
    """The text up to the second run of a command of counters, and from there on; line numbers stay."""
    if blob.item is not None or not _COMMANDS.any(blob.data):
        yield blob
        return
    text = blob.text
    runs: set[tuple[str, str]] = set()
    for match in _RUN.finditer(text):
        host = _HOST.search(match[1])
        run = (host[1] if host else "", match[2])
        if run in runs:
            head = text[: match.start()]
            yield replace(blob, data=head.encode())
            yield replace(blob, data=("\n" * head.count("\n") + text[match.start() :]).encode(), later=True)
            return
        runs.add(run)
    yield blob
