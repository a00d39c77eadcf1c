"""What lines of a job's output say that no head of NCCL marks: how a process ended, for which ranks others wait, which
fault they name, what torch prints while a job goes down. Each line by itself.

The sentences are entries of the catalogue. Here stands in which order a line is asked for their events, and what the
fields are called in events of a job.

That a peer is not reached, in the words of the operating system: whichever program prints them, it asked the same
kernel and the same resolver, so a line is read by the error and by what it was to reach, not by who says so.

SOURCE: glibc's strerror (ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ECONNREFUSED, ECONNABORTED) and gai_strerror
(EAI_NONAME, EAI_AGAIN, EAI_NODATA); libuv's and Go's names of the same errors (`no such host`, `i/o timeout`).
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping
from functools import lru_cache

from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.signatures.engine import LineMatch, events_of_job, of_job
from topodiag.evidence.signatures.entry import literals_of
from topodiag.evidence.signatures.literals import Finder
from topodiag.evidence.signatures.wrappers import unwrap
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
    if why and peer in OWN_BRIDGES:
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
    return "" if peer in OWN_BRIDGES else peer


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


MET, TRIED, MISMATCH = "met", "tried", "mismatch"
"""Kinds of events of a job; `tried` is a connect that its program tries again."""

WORDS = literals_of("collective", "framework", "launcher", "process")
"""A line without any of these is none of theirs."""
_ANY = Finder(WORDS)
_MOST_KEPT = 1000
"""Characters of a line whose answer is kept: jobs repeat the lines of their errors."""
MOST_READY = 1 << 16
"""More ranks than any list of ready ones names."""

Named = dict[str, str]
Said = tuple[str, Named]


def said_of(text: str) -> Said | None:
    """Kind and what the line names; None for all others. Kinds of `end_of`, those of communication, `device`, a fault
    alone, and `note`. `fault` is one of the catalogue; `host` the address that Ray puts in front, where no other is
    named."""
    if not _ANY.any(text.encode("utf-8", "replace")):
        return None
    return _said_of(text) if len(text) <= _MOST_KEPT else _said_of.__wrapped__(text)


@lru_cache(maxsize=4096)
def _said_of(text: str) -> Said | None:
    if (answer := _first(text, "before_ends")) is not None:
        return answer
    end, fault, accused = end_of(text), fault_of(text), _first(text, "accused")
    if end is None or end[1].get("how") == "exception":
        if not fault and (silent := unreached(text)):
            return "connect", silent
        # An exception that says how the calls of ranks differ is no end of one of them.
        end = accused if end is not None and accused is not None and accused[0] == MISMATCH else end
    if end is None and not fault:
        return _first(text, "transport") or accused or _tried(text)
    # That a peer's memory or link failed is said by each rank that reached for it: an error, and no device's fault yet.
    kind, named = end if end is not None else ("cuda" if fault == "contained" else "device", {})
    if fault:
        named["fault"] = fault
    if "pid=" in text and "(raylet" not in text and (host := unwrap(text).host):
        named.setdefault("host", host)
    return kind, named


def end_of(text: str) -> Said | None:
    """Kind (`ended`, `stalled`, `mismatch`) and what the line names; None for all others.

    `how` of an end: wrong (results), no room, memory, limit, preempted, evicted, node failure, cancelled, stopped,
    crash, exception, killed, aborted, hung up, exit, died, not launched, loader, or context (a line of torch's summary
    that names rank or host, a function of NCCL in a stack).
    """
    return _first(text, "ends")


def fault_of(text: str) -> str:
    """The fault of a device or limit that a line names (`fault.NAME` of the catalogue), "" where it names none."""
    return next((what for what, _ in events_of_job(text, "fault")), "")


def refused_of(text: str) -> Named:
    """`refused`: why a driver refuses a queue pair, or a program makes nothing of an address or a GID (`fault`);
    nothing for all other lines."""
    return next((_named(taken) for _, taken in events_of_job(text, "refused")), {})


def task_of(text: str) -> str:
    """The one task of which srun says how it ended, as digits; "" for other lines."""
    by_srun = (taken for taken in of_job(text) if taken.entry.id.startswith("launcher.task_"))
    tasks = next((str(taken.fields["ranks"]) for taken in by_srun), "")
    return tasks if tasks.isdecimal() and len(tasks) < 10 else ""


# --- what the fields of an event are called --------------------------------------------------------------------------

_TABLES = own_data("evidence/nccl_log/grammar/job_lines")
"""Of the fingerprint of a call, as torch prints it."""


def _named(taken: LineMatch, _what: str = "", _text: str = "") -> Named:
    """What an event names by the tables of `job_lines.toml`."""
    says = taken.entry.says
    names, fields = (_TABLES[of].get(says, _TABLES[of].get(says.partition(".")[0], {})) for of in ("names", "fields"))
    return {**names, **{fields[field]: str(value) for field, value in taken.fields.items() if field in fields}}


def _ending(taken: LineMatch, how: str, _text: str) -> Named:
    fields, named = taken.fields, _named(taken)
    if how == "signal":
        number = fields.get("code", fields.get("sequence"))
        how = how_of_code(-int(number if number is not None else signal.Signals[str(fields["name"])]))
        # A launcher names the process that ended first: nobody's end aborted it.
        how = "crash" if how == "aborted" else how
        return {name: value for name, value in named.items() if name != "what"} | {"how": how}
    if "how" in named:
        return named
    if how == "exception":
        message, uncaught = str(fields.get("reason", ""))[:200], "1" if "rank" in fields else ""
        return {"how": how, "what": str(fields["name"]), "message": message, "uncaught": uncaught}
    if "code" not in fields:
        return {"how": how, **named}
    by_code = how_of_code(int(fields["code"]))
    if taken.entry.says.startswith("job ended") and by_code not in ("killed", "crash"):
        by_code = "exit"
    return {"how": by_code, "code": str(fields["code"]), **named}


def how_of_code(code: int) -> str:
    """What an exit code tells: Python's is the negative signal, a shell's 128 and the signal, PBS's 256 and it."""
    return str(_TABLES["signals"].get(str(-code if code < 0 else code - (256 if code > 256 else 128)), "exit"))


def _stalled(taken: LineMatch, what: str, _text: str) -> Named:
    """`ranks` that others wait for, the operation (`op`), and `waited_ms`."""
    fields = taken.fields
    ranks = str(fields.get("ranks", "")).replace(" ", "")
    ranks = _left_out(ranks) if what == "ready" else ranks
    return {"ranks": ranks, "op": str(fields.get("collective", ""))[-120:], "waited_ms": str(fields.get("count", ""))}


def _left_out(ready: str) -> str:
    """The ranks below the highest that a list leaves out; "" where it leaves out none: the missing one is above."""
    came = {int(word) for word in re.findall(r"\d{1,6}", ready)}
    highest = max(came, default=0)
    if highest >= MOST_READY:
        return ""
    return ",".join(str(rank) for rank in range(highest) if rank not in came)


def _calls(taken: LineMatch, _what: str, _text: str) -> Named:
    """The ranks whose calls differ, and operation, shape and type of each call, as far as its fingerprint has them."""
    fields = taken.fields
    details = {"ranks": ",".join(str(fields[name]) for name in ("rank", "peer") if name in fields)}
    calls = {"one": fields.get("value", fields.get("size", "")), "other": fields.get("name", "")}
    for side, call in calls.items():
        parts = dict(_WORDS["part"].findall(str(call)))
        words = (parts.get(name, "") for name in ("OpType", "TensorShape", "TensorDtypes"))
        details[side] = " ".join(filter(None, words)) if parts else str(call)
        details[f"{side}_seq"] = parts.get("SequenceNumber", "")
    return details


def _accused(taken: LineMatch, what: str, text: str) -> Named:
    """What a line says of ranks as a verdict of its writer (`told`)."""
    ranks = [str(taken.fields["rank"])] if "rank" in taken.fields else []
    if what == MISMATCH:
        ranks = ranks or list(dict.fromkeys(_WORDS["rank"].findall(unwrap(text).text)))
    return {"told": "1", "ranks": ",".join(ranks)}


def _started(taken: LineMatch, what: str, text: str) -> Named | None:
    """What a process prints of its own start: `nodes`, `node`, `each` (processes of the node), or `world`, `rank`;
    `at`, where they meet; `clock`, seconds of the day. None for starts of one process or node."""
    if int(taken.fields["expected"]) < 2:
        return None
    clock = _WORDS["clock"].search(text) if what == "rank" else None
    time_s = str(int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3])) if clock is not None else ""
    return _named(taken) | {"clock": time_s}


def _shared(taken: LineMatch, _what: str, _text: str) -> Named | None:
    """The address that several nodes give for themselves, by the word of a program that counts them."""
    is_shared = int(taken.fields.get("count", 1)) < int(taken.fields.get("expected", 2))
    return {"peer": str(taken.fields["address"]), "why": "shared"} if is_shared else None


def _of_store(taken: LineMatch, _what: str, text: str) -> Named:
    """Torch's store, which a process does not reach."""
    peer = peer_of(text) or str(taken.fields.get("peer", ""))
    return {"peer": peer, "why": "number" if is_number(peer) else why_unreached(text) if peer else ""}


def _unanswered(taken: LineMatch, _what: str, _text: str) -> Named:
    peer = str(taken.fields["address"])
    return {"peer": peer, "why": "own" if peer in OWN_BRIDGES else "silent"}


def _of_gloo(taken: LineMatch, _what: str, text: str) -> Named | None:
    """Ranks that did not meet (`mesh`): `gloo` is an interface that is not there, `loopback` the address of a peer. A
    line that names a pair of ranks says more."""
    if not taken.fields and any(events_of_job(text, "gloo pair")):
        return None
    return _named(taken)


def _of_gloo_pair(taken: LineMatch, _what: str, text: str) -> Named:
    peer, why = str(taken.fields["address"]), why_unreached(text)
    if why == "refused":  # a peer that is there and gone, unless each host has that address for itself
        why = "own" if peer in OWN_BRIDGES else ""
    return {"peer": peer, "why": why}


def _of_device(taken: LineMatch, what: str, _text: str) -> Named:
    """Device, port, status or event of an entry about communication."""
    named = _named(taken)
    if taken.entry.says.startswith("ib async"):
        return {**named, "event": str(taken.fields.get("reason", what))}
    if what == "libfabric":
        return {"provider": what}
    status = str(taken.fields.get("code", what if what.isdecimal() else ""))
    return {"status": status, **named} if status else {}


_DETAILS: Mapping[str, Callable[[LineMatch, str, str], Named | None]] = {
    "launched": _started, "address shared": _shared, "store": _of_store, "no answer": _unanswered, "gloo": _of_gloo,
    "gloo pair": _of_gloo_pair, "calls differ": _calls, "accused": _accused,
    **dict.fromkeys(("awaited", "stalled"), _stalled), **dict.fromkeys(("ended", "job ended"), _ending),
    **dict.fromkeys(("ib completion", "connect", "timeout", "plugin", "cuda", "ib async"), _of_device),
}  # fmt: skip
"""By event of the catalogue, what names the fields of a line where the tables of names and fields do not suffice; None
where the entry says nothing after all."""


def _first(text: str, table: str) -> Said | None:
    """What the first of these events says that a line is taken for."""
    for event, kind in _TABLES["kinds"][table].items() if of_job(text) else ():
        for what, taken in events_of_job(text, event):
            named = _DETAILS.get(event, _named)(taken, what, text)
            if named is not None:
                return kind or what, {name: value for name, value in named.items() if value}
    return None


def _tried(text: str) -> Said | None:
    """A connect that is tried again: no error, and where nothing follows it the last that is known."""
    if any(events_of_job(text, "reached")):
        return TRIED, {"reached": "1"}
    peer = tried_for(text)
    return (TRIED, {"peer": peer}) if peer else None
