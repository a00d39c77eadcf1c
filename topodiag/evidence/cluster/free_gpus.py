"""Which GPUs can be used: a file of the free ones, and words that take nodes or GPUs out.

The file has a node set per line and the free GPUs behind it: `gpu[01-04] 0-3`, `gpu05 all`, `gpu06 slots=4` (the first
four). Without GPUs all of the node are meant. Nodes that the file does not name are not free.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from topodiag.evidence.interface import Blob
from topodiag.lazy import regex
from topodiag.model.cluster import Bools
from topodiag.model.errors import InputError
from topodiag.words.node_sets import MAX_GPUS, NodeSetError, expand, gpu_list, short

_LINE = regex(r"([^\s:]{1,65536})(?:[\s:]\s{0,100}(.{1,1000}))?")
_SLOTS = regex(r"slots\s?=\s?(\d{1,3})", re.IGNORECASE)


def read_free(blob: Blob) -> dict[str, tuple[int, ...] | None]:
    """The free GPUs by node, None for all that it has. Raises InputError with the line."""
    found: dict[str, tuple[int, ...] | None] = {}
    for line, text in blob.lines():
        bare = text.partition("#")[0].strip()
        if not bare:
            continue
        match = _LINE.fullmatch(bare)
        try:
            if match is None:
                raise NodeSetError(f"{short(bare)!r} is no node with its free GPUs: write gpu[01-04] 0-3")
            gpus = _gpus((match[2] or "all").strip())
            for node in expand(match[1]):
                if node in found:
                    raise NodeSetError(f"names node {short(node)!r} twice")
                found[node] = gpus
        except NodeSetError as error:
            raise InputError(blob.name, str(error), line=line) from None
    if not found:
        raise InputError(blob.name, "names no free GPU", hint="a line per node: gpu[01-04] 0-3")
    return found


def _gpus(text: str) -> tuple[int, ...] | None:
    if text.lower() == "all":
        return None
    if text.lower() in ("none", "-"):
        return ()
    match = _SLOTS.fullmatch(text)
    return tuple(range(min(int(match[1]), MAX_GPUS))) if match else gpu_list(text)


def keep_free(name: str, usable: Bools, index: Mapping[str, int], free: Mapping[str, tuple[int, ...] | None]) -> Bools:
    """The slots that are usable and free. Raises InputError for a node that is not in the cluster or a GPU that it does
    not have."""
    made = usable.copy()
    made[:] = False
    for node, gpus in free.items():
        number = index.get(node)
        if number is None:
            raise InputError(name, f"node {short(node)!r} is not in the cluster")
        if gpus is None:
            made[number] = usable[number]
            continue
        if gpus and gpus[-1] >= usable.shape[1]:
            raise InputError(name, f"node {short(node)!r} has no GPU {gpus[-1]}")
        made[number, list(gpus)] = usable[number, list(gpus)]
    return made


def take_out(usable: Bools, index: Mapping[str, int], words: Sequence[str]) -> Bools:
    """The slots without those that `gpu[01-04]` or `gpu07:0,3` names. Raises NodeSetError."""
    made = usable.copy()
    for word in words:
        nodes, colon, gpus = word.partition(":")
        chosen = list(gpu_list(gpus)) if colon else []
        for node in expand(nodes):
            number = index.get(node)
            if number is None:
                raise NodeSetError(f"node {short(node)!r} is not in the cluster")
            if chosen and chosen[-1] >= usable.shape[1]:
                raise NodeSetError(f"node {short(node)!r} has no GPU {chosen[-1]}")
            made[number, chosen if colon else slice(None)] = False
    return made
