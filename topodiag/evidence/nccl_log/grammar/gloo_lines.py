"""What Gloo says of the addresses at which its ranks meet."""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar import reach
from topodiag.evidence.nccl_log.grammar.numbers import compiled

_GLOO = compiled(
    r"\bUnable to find (?:address|interface) for: ([^\s]{1,60})"
    r"|\bconnectFullMesh failed\b(?:.{0,400}?\bremote=\[(127\.[\d.]{5,11}|::1)\](?:.{0,120}?\bsize=(\d{1,7})\b)?)?"
)
"""Gloo gloo/transport/tcp/device.cc (no interface has what GLOO_SOCKET_IFNAME says) and gloo/rendezvous/context.cc
(which peer was tried, at which address, and how many ranks there are: not in all of its releases)."""
_LOOPED = compiled(r"[Uu]sing the loopback address as fallback")
"""torch ProcessGroupGloo.cpp: the host's own name has no address of this host. Jobs of one node are well with it."""
_GLOO_PAIR = compiled(r"\bgloo/\S{1,120}\] connect \[([0-9a-fA-F.:]{3,45})\]:\d{1,5}: [A-Z]")
"""gloo/transport/tcp/pair.cc: the system's word on a connect."""
WORDS = (b"connectFullMesh", b"oopback address as", b"Unable to find address for: ",
         b"Unable to find interface for: ", b"gloo/")  # fmt: skip
"""A line without any of these is none of Gloo's."""


def said_of(text: str) -> tuple[str, dict[str, str]] | None:
    """Kind of such a line and what it names; None for all others. `gloo` is an interface that is not there, `loopback`
    the address of a peer, or `own`: taken for want of an address of this host; `mesh`, that the ranks did not meet."""
    if _LOOPED.search(text) is not None:
        return "note", {"loopback": "own"}
    gloo = _GLOO.search(text)
    pair = _GLOO_PAIR.search(text) if gloo is None or not (gloo[1] or gloo[2]) else None
    if pair is not None:
        why = reach.why_unreached(text)
        if why == "refused":  # a peer that is there and gone, unless each host has that address for itself
            why = "own" if reach.is_bridge(pair[1]) else ""
        return "connect", {"peer": pair[1], "why": why} if why else {"peer": pair[1]}
    if gloo is None:
        return None
    named = {"gloo": gloo[1] or "", "loopback": gloo[2] or "", "size": gloo[3] or ""}
    return "connect", {name: value for name, value in (named | {"mesh": "1"}).items() if value}
