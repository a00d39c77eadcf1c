"""Offers the tables of `nvidia-smi topo -p2p` to the draft, one per capability.

Apart from the source, because a pasted text often holds `topo -m` and `topo -p2p` together.
"""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.smi_matrix import P2P_WORDS, Matrix
from topodiag.lazy import regex

CAPABILITIES = {"r": "read", "w": "write", "n": "nvlink", "a": "atomics", "p": "prop"}
"""Letters of `topo -p2p` by nvidia-smi's help; `prop` is the proprietary path over PCIe (NVML's PCI index)."""

_OPTION = regex(r"-p2p(?:\s{1,8}|=)([rwnap]{1,5})(?![A-Za-z0-9])|--p2p_status(?:\s{1,8}|=)([rwnap]{1,5})\b")


def capabilities(arguments: str) -> tuple[str, ...]:
    """The capabilities that a command line asks for, e.g. `topo -p2p rw`; empty when it does not say."""
    match = _OPTION.search(arguments)
    if match is None:
        return ()
    return tuple(dict.fromkeys(CAPABILITIES[letter] for letter in (match[1] or match[2])))


def offer_p2p(blob: Blob, matrix: Matrix, draft: NodeDraft) -> None:
    """Offer each cell under the capability that was asked for, or under `p2p:unknown`.

    A table for several capabilities at once says `OK` when all are there; its other words do not say which one is
    missing, so those stay under `p2p:unknown`.
    """
    argv = " ".join(blob.item.argv) if blob.item else ""
    asked = capabilities(argv) or capabilities(matrix.command)
    for row in matrix.rows:
        if not row.label.startswith("GPU"):
            continue
        origin = blob.origin(row.line, row.text)
        for column, word in row.cells:
            if word not in P2P_WORDS or not column.startswith("GPU"):
                continue
            known = asked if len(asked) == 1 or word == "OK" else ()
            for name in known or ("unknown",):
                a, b = draft.gpu(index=int(row.label[3:])), draft.gpu(index=int(column[3:]))
                draft.pair(f"p2p:{name}", a, b, word, origin)
