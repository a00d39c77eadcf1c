"""What the catalogue says of one line of a job's output: which fault it names, how a process ended, who is missing.

Events of `process.toml` and `launcher.toml` are `fault.NAME`, `ended.HOW`, `job ended.HOW` and `stalled`. Their fields
get the names here that events of a job have.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.signatures.engine import LineMatch, of_job
from topodiag.evidence.signatures.entry import literals_of
from topodiag.evidence.signatures.wrappers import unwrap

FAMILIES = ("collective", "framework", "launcher", "process")
WORDS = literals_of(*FAMILIES)
"""A line without any of these is none of theirs."""
CONTAINED = "contained"
"""CUDA's error 721: memory of a peer could not be reached over NVLink, by the peer's fault or the link's."""

_DETAILS = {
    "name": "what", "reason": "what", "value": "at", "ranks": "tasks", "rank": "named_rank", "host": "host",
    "local_rank": "local_rank",
}  # fmt: skip
"""Fields of an end, and what events of a job call them."""
_SIGNALS = {
    1: "hung up", 2: "cancelled", 3: "stopped", 6: "aborted", 7: "crash", 8: "crash", 9: "killed", 11: "crash",
    15: "stopped",
}  # fmt: skip

MET, LAUNCHED = "met", "launched"
STALLED, MISMATCH = "stalled", "mismatch"
_RANK = compiled(r"\b[Rr]ank ?(\d{1,7})\b")
_SUPPOSED = compiled(
    r"(?i:\b(?:if|when|whether|unless|until|in case|may|might|could|should|would|can(?!'t)|will|please|ensure|make sure"
    r"|re-?try\w*|example|e\.g\.|simulat\w*|inject\w*|to (?:find|detect|avoid))\b)|\?\s*$"
    r"|^\s{0,8}(?:#|//|\*|<!--|-\s|`|\|)|^\s{0,8}[\w.\"'-]{1,60}\s{0,3}[=:]\s{0,3}[\w.\"'/-]{1,60},?\s*$"
    r"|\bdef |\breturn\b|\bimport\b"
)
"""What may come, and questions, advice and code."""
_STARTS = {
    "rank": {"world": "expected", "rank": "rank", "at": "address"},
    "node": {"nodes": "expected", "node": "sequence", "each": "count", "at": "address"},
}
_CLOCK = compiled(r"(?<![\d:])(\d\d):(\d\d):(\d\d)(?![\d:])")
_ERRNO = compiled(
    r"[:,] ?(Connection timed out|unhandled timeout error|No route to host|(?:Network|Host) is unreachable"
    r"|Invalid argument|No data available|No such device|Operation not permitted|Operation not supported)"
)


def fault_of(text: str) -> str:
    """The fault of a device or limit that a line names (`fault.NAME` of the catalogue), "" where it names none."""
    return next((what for what, _ in said_in(text, "fault")), "")


def end_of(text: str) -> dict[str, str] | None:
    """`how` a process ended, or did not start, and what the line names; None for all other lines."""
    return next((_ending(how, taken) for how, taken in said_in(text, "ended")), None)


def job_end_of(text: str) -> dict[str, str] | None:
    """The same of lines that count where no process is named by another reader."""
    return next((_ending(how, taken) for how, taken in said_in(text, "job ended")), None)


def stalled_of(text: str, kind: str = "stalled") -> dict[str, str] | None:
    """`ranks` that others wait for, the operation (`op`), and `waited_ms`; None for all other lines."""
    for _, taken in said_in(text, kind):
        fields = taken.fields
        named = {"ranks": str(fields.get("ranks", "")).replace(" ", ""), "op": str(fields.get("collective", ""))}
        return named | ({"waited_ms": str(fields["count"])} if "count" in fields else {})
    return None


def state_of(text: str) -> tuple[str, dict[str, str]] | None:
    """What a line says of ranks as a verdict of its writer (`told`): calls that differ (`mismatch`), or ranks that
    others wait for (`stalled`). None for all other lines."""
    for taken in of_job(text):
        ranks = [str(taken.fields["rank"])] if "rank" in taken.fields else []
        if taken.entry.says == MISMATCH:
            ranks = ranks or list(dict.fromkeys(_RANK.findall(unwrap(text).text)))
        elif taken.entry.says != "behind":
            continue
        kind = MISMATCH if taken.entry.says == MISMATCH else STALLED
        return kind, {"told": "1"} | ({"ranks": ",".join(ranks)} if ranks else {})
    return None


def tasks_of(text: str) -> str:
    """The tasks of which srun says how they ended, as it lists them; "" for other lines."""
    return next(
        (str(taken.fields["ranks"]) for taken in of_job(text) if taken.entry.id.startswith("launcher.task_")), ""
    )


def is_note(text: str) -> bool:
    """Whether a line names no cause: a program prints it while it goes down, or in a run that is well. What somebody
    interrupted is one."""
    entries = [taken.entry for taken in of_job(text)]
    return any(entry.says == "note" for entry in entries) and all(entry.id != "launcher.interrupt" for entry in entries)


def met_of(text: str) -> dict[str, str] | None:
    """Of a barrier at torch's store, which each start prints: `key` and `ranks` (the one rank that speaks); `world` and
    `came`, how many it waits for and saw, or `all`, of how many it saw all. None for all other lines."""
    for how, taken in said_in(text, MET):
        fields = taken.fields
        size = "all" if how == "all" else "world"
        named = {"key": "name", "ranks": "ranks", size: "expected", "came": "count"}
        return {detail: str(fields[name]) for detail, name in named.items() if name in fields}
    return None


def refused_of(text: str) -> dict[str, str]:
    """`refused`: why a driver refuses a queue pair, or a program makes nothing of an address or a GID (`fault`);
    nothing for all other lines."""
    for what, _ in said_in(text, "refused"):
        if what == "handle":
            return {"refused": "no address handle for it", "provider": "libfabric"}
        why = _ERRNO.search(text)
        if what == "qp":
            return {"refused": why[1] if why is not None else "refused"}
        if _SUPPOSED.search(text) is None:
            return {"refused": why[1] if why is not None else "Invalid argument", "fault": "gid"}
    return {}


def launch_of(text: str) -> dict[str, str] | None:
    """What a process prints of its own start: `nodes`, `node`, `each` (processes of the node), or `world`, `rank`;
    `at`, where they meet; `clock`, seconds of the day. None for all other lines, and for starts of one process or
    node."""
    for what, taken in said_in(text, LAUNCHED):
        fields = taken.fields
        if int(fields["expected"]) > 1:
            names = _STARTS[what]
            named = {name: str(fields[field]) for name, field in names.items() if field in fields}
            clock = _CLOCK.search(text) if what == "rank" else None
            if clock is None:
                return named
            return named | {"clock": str(int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3]))}
    return None


def first(text: str, kind: str) -> LineMatch | None:
    """The first entry of a kind, with what it reads, that takes a line."""
    return next((taken for taken in of_job(text) if f"{taken.entry.says}.".startswith(f"{kind}.")), None)


def how_of_code(code: int) -> str:
    """What an exit code tells: Python's is the negative signal, a shell's is 128 and the signal."""
    return _SIGNALS.get(-code if code < 0 else code - 128 if code > 128 else 0, "exit")


def said_in(text: str, kind: str) -> Iterator[tuple[str, LineMatch]]:
    """What stands behind the kind in the names of the entries that take a line, the first entry first."""
    for taken in of_job(text):
        first, _, rest = taken.entry.says.partition(".")
        if first == kind:
            yield rest, taken


def _ending(how: str, taken: LineMatch) -> dict[str, str]:
    fields = taken.fields
    named = {_DETAILS[name]: str(value) for name, value in fields.items() if name in _DETAILS}
    if how == "signal":
        how = how_of_code(-_number_of(taken))
        # A launcher names the process that ended first: nobody's end aborted it.
        how = "crash" if how == "aborted" else how
        return {name: value for name, value in named.items() if name != "what"} | {"how": how}
    if "code" not in fields:
        return {"how": how, **named}
    by_code = how_of_code(int(fields["code"]))
    if taken.entry.says.startswith("job ended") and by_code not in ("killed", "crash"):
        by_code = "exit"
    return {"how": by_code, "code": str(fields["code"]), **named}


def _number_of(taken: LineMatch) -> int:
    """The number of the signal that ended a process, by number or by name."""
    fields = taken.fields
    number = fields.get("code", fields.get("sequence"))
    return int(number) if number is not None else int(signal.Signals[str(fields["name"])])
