"""That a peer is not reached, in the words of the operating system: whichever program prints them, it asked the same
kernel and the same resolver, so a line is read by the error and by what it was to reach, not by who says so.

SOURCE: glibc's strerror (ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ECONNREFUSED, ECONNABORTED) and gai_strerror
(EAI_NONAME, EAI_AGAIN, EAI_NODATA); libuv's and Go's names of the same errors (`no such host`, `i/o timeout`).
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.signatures.lines import events_of_job

OWN_BRIDGES = frozenset({"172.17.0.1", "192.168.122.1", "10.88.0.1", "127.0.1.1"})
"""Addresses of docker0, of libvirt's virbr0 and of Podman's bridge, as they make them on every host, and the one that
Debian's installer gives to the host's own name: who connects there finds its own host."""
_NUMBERED = compiled(r"\d{1,10}|0\.(?!0\.0\.0)\d{1,3}\.\d{1,3}\.\d{1,3}")
"""A host name of digits alone is read as the number of an IPv4 address (inet_aton(3)), mostly one of 0.0.0.0/8, which
no host has (RFC 1122, 3.2.1.3)."""
_REACHES = compiled(
    r"[Cc]onnect(?:ion|ing)?\b|[Rr]esolv|name resolution|\bgai ?error\b|getaddrinfo|\bdial\b|[Rr]endezvous|\bssh\b"
)
"""A line of an attempt to reach somebody. A collective, a barrier or a request that timed out is none."""
_NO_TRIAL = compiled(
    r"(?:^|[\s\[(])(?:W\d{0,4}|WARN(?:ING)?|INFO|DEBUG|I\d{4}|D\d{4})\b|\b(?:re-?try|re-?tries|retrying|will try)\b"
    r"|\battempt\b|[Rr]etry"
)
"""What a program says of itself that it tries again: jobs that are well say it while their peers start."""
_PEER = compiled(
    r"(?:\bof |\bto |[Rr]esolve (?:hostname )?|\bhost |\bdial tcp |\blookup |\bpeer |\bfor )[\[('\"]?"
    r"(?!(?:peer|any|anything|the|a|an|network|hostname|host|initialize|connect|establish|reach|be|it|its|all)\b)"
    r"([0-9a-fA-F]{0,4}:[0-9a-fA-F:]{2,40}(?=\])|\d{1,3}(?:\.\d{1,3}){3}|[A-Za-z0-9][\w-]{0,62}(?:\.[\w-]{1,63}){0,8})"
    r"(?:(\]?[:,<] ?\d{1,5}\b)|[\s)\]'\":<]|$)"
)
_ADDRESS = compiled(r"(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3})(?![\d.])")
_ELSEWHERE = compiled(
    r"\b(?:https?|s3|gs|oci)://|HTTPS?\b|\burllib|\brequests\.|\baiohttp|\bbotocore|\b[Pp]roxy\b|\bwandb\b"
    r"|[:=] ?(?:443|80|8080|3128|5432|6379)\b|\bhuggingface|\bpypi\b|\bdocker\.io\b|\bregistry\b|\blicense"
)
"""What is fetched from a server is no peer of the job."""
_OF_RAY = compiled(r"\bGCS\b|\bredis_context\.cc\b|\braylet\b|\bRay (?:head|cluster|instance)\b")
"""Ray's head listens where others have a database."""
_OF_RANKS = compiled(
    r"(?i:\b(?:orte?|prte|pmix|mpi\w{0,12}|ucx|ucc|uct|ucp|gloo|[nrh]ccl|nvshmem|rdma_?cm|libfabric|c10d|torch\w{0,8}"
    r"|jax|coordination|ray|raylet|gcs|redis_context|rendezvous|store|workers?|ranks?)\b|btl_|oob_|\.worker-|\bworker-)"
)
"""Who speaks of ranks and their meeting. A database that a program does not reach is no peer of the job's."""
_OF_A_STREAM = compiled(
    r"ocket(?:Start|Poll)Connect\b|Call to (?:recv|send)|\b(?:recv|send|read|write)(?:\(\)|_all)? (?:to|from|failed)"
)
"""A connection that stood, whose fall is told elsewhere, and NCCL's own words."""


def why_unreached(text: str) -> str:
    """Why an attempt to reach a peer failed: `name`, `route`, `aborted`, `refused`, `silent`; "" where the line tells
    of none, or of one that is tried again."""
    if _REACHES.search(text) is None or any(none.search(text) for none in (_OF_A_STREAM, _NO_TRIAL)):
        return ""
    if _ELSEWHERE.search(text) is not None and _OF_RAY.search(text) is None:
        return ""
    return _why(text)


def _why(text: str) -> str:
    """The first of the system's errors that stands in a line: a name that was not found may be said to have timed out
    as well."""
    return next((why for why, _ in events_of_job(text, "unreached")), "")


def unreached(text: str) -> dict[str, str]:
    """Whom a program of the ranks did not reach, and why; nothing where the line does not say both. A peer that refuses
    was reached, and its process is gone or not yet there: told only where each host has that address for itself."""
    if not of_ranks(text):
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
    if _REACHES.search(text) is None or _NO_TRIAL.search(text) is None or _OF_A_STREAM.search(text) is not None:
        return ""
    if not of_ranks(text) or (_ELSEWHERE.search(text) is not None and _OF_RAY.search(text) is None):
        return ""
    why = _why(text)
    peer = peer_of(text).removeprefix("::ffff:") if why in ("route", "silent") else ""
    return "" if is_bridge(peer) else peer


def is_bridge(address: str) -> bool:
    """Whether an address is that of a bridge which each host has for itself."""
    return address in OWN_BRIDGES


def is_number(peer: str) -> bool:
    """Whether what is to be reached is a host's name that is read as a number, or the address that comes of it."""
    return _NUMBERED.fullmatch(peer) is not None


def of_ranks(text: str) -> bool:
    """Whether a line is of a library, a launcher or a store by which ranks meet."""
    return _OF_RANKS.search(text) is not None


def peer_of(text: str) -> str:
    """The host or address that was to be reached, without its port; "" where the line names none."""
    for match in _PEER.finditer(text):
        # A plain word is a host where a port stands behind it.
        if any(sign in "0123456789.-:" for sign in match[1]) or match[2]:
            return str(match[1]).strip("[]")
    address = _ADDRESS.search(text)
    return str(address[1]) if address is not None else ""
