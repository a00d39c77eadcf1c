"""That a peer is not reached, in the words of the operating system: whichever program prints them, it asked the same
kernel and the same resolver, so a line is read by the error and by what it was to reach, not by who says so.

SOURCE: glibc's strerror (ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ECONNREFUSED, ECONNABORTED) and gai_strerror
(EAI_NONAME, EAI_AGAIN, EAI_NODATA); libuv's and Go's names of the same errors (`no such host`, `i/o timeout`).
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.signatures.lines import events_of_job
from topodiag.words.own_data import own_data

OWN_BRIDGES = frozenset({"172.17.0.1", "192.168.122.1", "10.88.0.1", "127.0.1.1"})
"""Addresses of docker0, of libvirt's virbr0 and of Podman's bridge, as they make them on every host, and the one that
Debian's installer gives to the host's own name: who connects there finds its own host."""
_WORDS = {name: compiled("".join(pieces)) for name, pieces in own_data("evidence/nccl_log/grammar/reach").items()}


def _holds(text: str, *names: str) -> bool:
    """Whether a line holds words of one of these tables of `reach.toml`."""
    return any(_WORDS[name].search(text) is not None for name in names)


def why_unreached(text: str, *, tried_again: bool = False) -> str:
    """Why an attempt to reach a peer failed: `name`, `route`, `aborted`, `refused`, `silent`; "" where the line tells
    of none, and of one that is tried again unless such a one is asked for. The first of the system's errors counts: a
    name that was not found may be said to have timed out as well."""
    if not _holds(text, "attempt") or _holds(text, "stream", "no_port") or _holds(text, "again") is not tried_again:
        return ""
    if _holds(text, "elsewhere") and not _holds(text, "of_ray"):
        return ""
    return next((why for why, _ in events_of_job(text, "unreached")), "")


def unreached(text: str) -> dict[str, str]:
    """Whom a program of the ranks did not reach, and why; nothing where the line does not say both. A peer that refuses
    was reached, and its process is gone or not yet there: told only where each host has that address for itself."""
    if not _holds(text, "of_ranks"):
        return {}
    why, peer = why_unreached(text), peer_of(text)
    if why and is_bridge(peer):
        why = "own"
    if why and is_number(peer):
        why = "number"
    return {"peer": peer, "why": why} if why and peer and why != "refused" else {}


def tried_for(text: str) -> str:
    """The peer that a library by which ranks meet gets no answer from, and asks again; "" where the line tells of none.
    A peer that refuses, and a name that is not known yet, are what ranks meet that start before the first one."""
    if not _holds(text, "of_ranks") or why_unreached(text, tried_again=True) not in ("route", "silent"):
        return ""
    peer = peer_of(text).removeprefix("::ffff:")
    return "" if is_bridge(peer) else peer


def is_bridge(address: str) -> bool:
    """Whether an address is that of a bridge which each host has for itself."""
    return address in OWN_BRIDGES


def is_number(peer: str) -> bool:
    """Whether what is to be reached is a host's name that is read as a number, or the address that comes of it."""
    return _WORDS["number"].fullmatch(peer) is not None


def peer_of(text: str) -> str:
    """The host or address that was to be reached, without its port; "" where the line names none."""
    for match in _WORDS["peer"].finditer(text):
        # A plain word is a host where a port stands behind it.
        if any(sign in "0123456789.-:" for sign in match[1]) or match[2]:
            return str(match[1]).strip("[]")
    address = _WORDS["address"].search(text)
    return str(address[1]) if address is not None else ""
