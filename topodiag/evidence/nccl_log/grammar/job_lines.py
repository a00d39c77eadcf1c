"""Lines of a job's output that no head of NCCL marks: how a process ended and for which ranks others wait (`ends`),
which fault they name, and what torch prints while a job goes down. Each line by itself.

Sentences are entries of the catalogue (`job_sentences`); here stands in which order a line is asked for them.
"""

from __future__ import annotations

from functools import lru_cache

from topodiag.evidence.nccl_log.grammar import ends, job_sentences, reach, scheduled
from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.signatures.engine import LineMatch
from topodiag.evidence.signatures.literals import finder
from topodiag.evidence.signatures.wrappers import unwrap

TRIED = "tried"
"""Kind of a connect that its program tries again."""

WORDS = (
    b"client socket has", b"ssh: Could not resolve", b"Transport type",
    *ends.WORDS, *job_sentences.WORDS, *scheduled.WORDS,
)  # fmt: skip
"""A line without any of these is none of theirs."""

_ANY = finder(WORDS)


_OF_WORK = compiled(
    r"[Rr]etr(?:y|ies) .{0,12}exceed|_cq_error\b|OFI poll|[Cc]ompletion .{0,40}(?:error|status)|\bCQE?\b"
    r"|Remote (?:access|operation)"
)
_OF_PEER = compiled(
    r"unreachable|[Tt]imed? ?out|refused|[Rr]eset by|rdma_\w{3,24} ?(?:\([^)]{0,80}\) )?failed|[Ee]ndpoint|\bconnect"
)


_STEPS = ("ib completion", "refused", "connect", "timeout", "plugin", "cuda", "ib async")
"""Kinds of entries about communication, in the order in which a line is asked for them."""


_MOST_KEPT = 1000
"""Characters of a line whose answer is kept: jobs repeat the lines of their errors."""


def speaks(text: str) -> bool:
    """Whether a line is one of these."""
    return said_of(text) is not None


def said_of(text: str) -> tuple[str, dict[str, str]] | None:
    """Kind and what the line names; None for all others. Kinds of `ends.end_of`, and `device`: a fault alone, and
    `note`. `fault` is one of the catalogue; `host` the address that Ray puts in front, where no other is named."""
    if not _ANY.any(text.encode("utf-8", "replace")):
        return None
    return _said_of(text) if len(text) <= _MOST_KEPT else _said_of.__wrapped__(text)


@lru_cache(maxsize=4096)
def _said_of(text: str) -> tuple[str, dict[str, str]] | None:
    if job_sentences.is_note(text):
        return "note", {}
    pair = _before_all(text) or _of_libraries(text) or _unmet(text) or _waits(text)
    if pair is not None:
        return pair
    end, fault = _end_of(text), job_sentences.fault_of(text)
    if (end is None or end[1].get("how") == "exception") and not fault and (unreached := _unreached(text)):
        return "connect", unreached
    if end is None and not fault:
        return _of_transport(text) or job_sentences.state_of(text) or _tried(text)
    # That a peer's memory or link failed is said by each rank that reached for it: an error, and no device's fault yet.
    kind, named = end if end is not None else ("cuda" if fault == job_sentences.CONTAINED else "device", {})
    if fault:
        named["fault"] = fault
    if "pid=" in text and "(raylet" not in text and (host := unwrap(text).host):
        named.setdefault("host", host)
    return kind, named


def _tried(text: str) -> tuple[str, dict[str, str]] | None:
    """A connect that is tried again: no error, and where nothing follows it the last that is known."""
    if "client socket has connected to" in text:
        return TRIED, {"reached": "1"}
    peer = reach.tried_for(text)
    return (TRIED, {"peer": peer}) if peer else None


def _end_of(text: str) -> tuple[str, dict[str, str]] | None:
    """How a process or a job ended, or whom others wait for. An exception that says how the calls of ranks differ is
    no end of one of them."""
    end = ends.end_of(text) or scheduled.end_of(text)
    if end is None or end[1].get("how") != "exception":
        return end
    state = job_sentences.state_of(text)
    return state if state is not None and state[0] == job_sentences.MISMATCH else end


def _before_all(text: str) -> tuple[str, dict[str, str]] | None:
    """What a line says that others of its words would hide: a start, a port that is taken, the rank that makes an
    id."""
    start = job_sentences.launch_of(text)
    if start is not None:
        return job_sentences.LAUNCHED, start
    met = job_sentences.met_of(text)
    if met is not None:
        return job_sentences.MET, met
    end = ends.end_of(text) if "use" in text or "USE" in text else None
    if end is not None and end[1].get("how") == "port taken":
        return end
    shared = reach.shared_address(text)
    if shared:
        return "connect", {"peer": shared, "why": "shared"}
    if job_sentences.first(text, "note.iwarp") is not None:
        return "note", {"transport": "iwarp"}
    late = job_sentences.stalled_of(text, "awaited")
    return ("stalled", late) if late is not None else None


def _waits(text: str) -> tuple[str, dict[str, str]] | None:
    """A timeout of a framework's store, and a watchdog that heard nothing."""
    return next(((kind, {}) for kind in ("timeout", "watchdog") if _of_framework(text, kind)), None)


def _of_framework(text: str, kind: str) -> bool:
    taken = job_sentences.first(text, kind)
    return taken is not None and taken.entry.id.startswith("framework.")


def _unmet(text: str) -> tuple[str, dict[str, str]] | None:
    """What a process says that it does not reach: a peer, torch's store, gloo's or the launcher's other nodes."""
    closed, store = job_sentences.first(text, "peer closed"), job_sentences.first(text, "store")
    if closed is not None:
        return "peer closed", _nonempty({"peer": str(closed.fields.get("peer", ""))})
    if store is not None:
        peer = reach.peer_of(text) or str(store.fields.get("peer", ""))
        why = "number" if reach.is_number(peer) else reach.why_unreached(text) if peer else ""
        return "connect", _nonempty({"peer": peer, "why": why})
    tried = job_sentences.first(text, "no answer")
    if tried is not None:
        peer = str(tried.fields["address"])
        return "connect", {"peer": peer, "why": "own" if reach.is_bridge(peer) else "silent"}
    blocked = reach.blocked_of(text)
    if blocked:
        return "connect", {"peer": blocked, "why": "silent"}
    gloo = _of_gloo(text)
    if gloo is not None:
        return gloo
    launch = job_sentences.first(text, "no launch")
    if launch is None:
        return None
    return "ended", _nonempty({"how": "not launched", "host": str(launch.fields.get("host", ""))})


def _of_gloo(text: str) -> tuple[str, dict[str, str]] | None:
    """What Gloo says of the addresses at which its ranks meet. `gloo` is an interface that is not there, `loopback` the
    address of a peer, or `own`: taken for want of an address of this host; `mesh`, that the ranks did not meet."""
    if job_sentences.first(text, "note.loopback") is not None:
        return "note", {"loopback": "own"}
    gloo, pair = job_sentences.first(text, "gloo"), job_sentences.first(text, "gloo pair")
    if pair is not None and (gloo is None or not gloo.fields):
        peer, why = str(pair.fields["address"]), reach.why_unreached(text)
        if why == "refused":  # a peer that is there and gone, unless each host has that address for itself
            why = "own" if reach.is_bridge(peer) else ""
        return "connect", _nonempty({"peer": peer, "why": why})
    if gloo is None:
        return None
    named = {"gloo": "value", "loopback": "address", "size": "count"}
    return "connect", {name: str(gloo.fields[of]) for name, of in named.items() if of in gloo.fields} | {"mesh": "1"}


def _of_transport(text: str) -> tuple[str, dict[str, str]] | None:
    """An error that a transport library prints as its own, by what failed: work, the way to a peer, or neither."""
    if job_sentences.first(text, "transport") is None:
        return None
    kind = "ib completion" if _OF_WORK.search(text) else "connect" if _OF_PEER.search(text) else "other"
    return kind, {}


def _unreached(text: str) -> dict[str, str]:
    """Whom a program of the ranks did not reach, and why; nothing where the line does not say both. A peer that refuses
    was reached, and its process is gone or not yet there: told only where each host has that address for itself."""
    if not reach.of_ranks(text):
        return {}
    why, peer = reach.why_unreached(text), reach.peer_of(text)
    if why and reach.is_bridge(peer):
        why = "own"
    if why and reach.is_number(peer):
        why = "number"
    return {"peer": peer, "why": why} if why and peer and why != "refused" else {}


def _nonempty(named: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in named.items() if value}


def _of_libraries(text: str) -> tuple[str, dict[str, str]] | None:
    """What a verbs program or a communication library says of a failed work request, a queue pair, an event of the
    port: UCX, perftest, libfabric, NVSHMEM, HCCL, oneCCL."""
    for kind in _STEPS:
        if kind == "refused":
            refused = job_sentences.refused_of(text)
            if refused:
                return "connect", refused
            continue
        taken = job_sentences.first(text, kind)
        if taken is not None and taken.entry.id.startswith("collective."):
            return kind, _of_device(taken)
    return ("note", {}) if job_sentences.first(text, "note.manager") is not None else None


def _of_device(taken: LineMatch) -> dict[str, str]:
    """Device, port, status or event of an entry about communication."""
    kind, _, rest = taken.entry.says.partition(".")
    fields = taken.fields
    named = {"hca": str(fields.get("nic", "")), "port": str(fields.get("port", ""))}
    if kind == "ib async":
        return {**named, "event": str(fields.get("reason", rest))}
    if rest == "libfabric":
        return {"provider": rest}
    status = str(fields.get("code", rest if rest.isdecimal() else ""))
    return {"status": status, **named} if status else {}
