"""Exceptions by their names, of any Python program: which one, with which message, and whether nobody caught it.

    [rank3]: AssertionError                                  Python, with the rank that torch puts in front
    2025-10-31 03:11:02 - train - ERROR - MemoryError        the same, by a logger
    torch.OutOfMemoryError: CUDA out of memory. ..           with its module and a message

SOURCE: CPython Lib/traceback.py; torch distributed/elastic/multiprocessing/api.py (SignalException).
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.job_sentences import how_of_code
from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.lazy import regex

_EXCEPTION = compiled(
    r"(?:^|[\s:\]\"'])((?:[A-Za-z_]\w{0,60}\.){0,8}_?[A-Z]\w{0,60}(?:Error|Exception|Interrupt)): (\S.{0,1500})$"
)
_BARE_EXCEPTION = compiled(
    r"^\s{0,8}(?:\[rank\d{1,6}\]: ?)?(?:[A-Za-z_]\w{0,60}\.){1,8}([A-Z]\w{0,60}(?:Error|Exception))\s*$"
)
"""One without a message, told by its module."""
_UNCAUGHT = compiled(r"\[rank(\d{1,9})\]: *$")
"""Torch's hook for what nobody caught puts its rank before each line."""
_SRUN = compiled(r"(?:\[\d{1,6},(?=\d)|\s{0,8})(\d{1,6})(?:\]<std(?:err|out)>:|: ) *$")
"""`srun -l` and `mpirun --tag-output` put the rank before each line, caught or not."""
_OF_OTHERS = regex(
    r"find (?:the |any |a )?(?:network|socket) interface|"
    r"ChildFailedError|LustreError|\w(?:Dead|Died|Lost|Gone)(?:Error|Exception)|Dist(?:Backend|Store|Network)Error|\bnccl|NCCL|Ray(?:Actor|Task)Error|Actor(?:Died|Unavailable)"
    r"Error|WorkerCrashed|store based barrier|TCPStore|Broken pipe|[Cc]onnection (?:reset|refused|closed|was)|EOFError"
    r"|[Uu]ncorrectable|ECC|nvlink|NVLink|hardware error|not yet initialized|unknown error"
    r"|CUDA-capable|initialization error|named symbol|no kernel image|/dev/shm|shared memory|Bus error"
    r"|DataLoader worker|gloo|Gloo|Horovod|monitoredBarrier|mismatch between collectives|Watchdog|heartbeat"
    r"|[Tt]imed? ?out|Timeout|\b[Hh][Cc][Cc][Ll]|\bHccl|oneCCL|\|CCL_ERROR\|"
)
"""Exceptions that a process meets because something else failed before: another process, the network, the GPU."""
_HEAD = r"^\s{0,8}(?:.{0,160}?(?:\]:?|[\w)]:|>|\w -)\s{1,4})?"
"""What stands before an exception's name: nothing, a rank, or what a logger puts there."""
_LONE = compiled(
    rf"{_HEAD}(AssertionError|MemoryError|NotImplementedError|RecursionError|StopIteration)\s*$"
    r"|\[rank(\d{1,6})\]:\s{0,4}((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception))\s*$"
)
"""Names that Python's own statements raise alone; others only where torch's hook for what nobody caught prints them: a
list of names is no traceback."""
_GOT_SIGNAL = compiled(r"Process \d{1,9} got signal: (\d{1,2})\b")
"""torch distributed/elastic/multiprocessing/api.py: what the launcher raises where a signal ends it."""
_OPERATION = (
    r"((?:all[-_ ]?(?:reduce|gather|to[-_ ]?all)|reduce[-_ ]?scatter|barrier|collective)\w{0,12}"
    r"|(?:CPU|GPU) (?:recv|send|receive)|(?:expert|moe) (?:dispatch|combine))"
)
_TIME_OUT = r"\btime[d -]{0,2}out\b"
_WAITED = compiled(rf"(?i:\b{_OPERATION}\b.{{0,80}}{_TIME_OUT}|{_TIME_OUT}.{{0,80}}\b{_OPERATION}\b)")
"""An exception of a rank that waited for others in an operation until its time was over, in any library's words."""
_OTHER_WAITS = regex(
    r"NCCL|nccl|[Ss]tore|[Gg]loo|HCCL|[Hh]ccl|CCL_|Horovod|[Cc]onnect|[Hh]andshake|[Ss]ocket|[Hh]eartbeat|https?://|HTTP"
)
"""Waits that are told by other words, or are none for ranks."""

WORDS = (
    b"Error", b"Exception", b"Interrupt: ", b"AssertionError", b"StopIteration",
)  # fmt: skip
"""A line without any of these names no exception."""


def lone_of(text: str) -> dict[str, str] | None:
    """An exception without a message, as `exception_of` gives it; None for all other lines."""
    found = _LONE.search(text)
    if found is None:
        return None
    name = (found[1] or found[3]).rsplit(".", 1)[-1]
    return {"how": "exception", "what": name, "message": "", "uncaught": "1" if rank_of(text) else ""}


def exception_of(text: str) -> dict[str, str] | None:
    """`what`, `message` and `uncaught` of an exception that nothing else explains; None for all other lines."""
    bare = _BARE_EXCEPTION.match(text)
    if bare is not None and _OF_OTHERS.search(text) is None:
        return {"how": "exception", "what": bare[1], "message": "", "uncaught": ""}
    found = _EXCEPTION.search(text)
    if found is None or (_OF_OTHERS.search(text) and not found[1].endswith(("ImportError", "ModuleNotFoundError"))):
        return None
    if found[1].endswith("SignalException") and (how := _how_of_signal(found[2])):
        return {"how": how}
    return {
        "how": "exception",
        "what": found[1].rsplit(".", 1)[-1],
        "message": found[2][:200],
        "uncaught": "1" if _UNCAUGHT.search(text[: found.start(1)]) else "",
    }


def waited_in(text: str) -> str:
    """The operation in which a rank waited for others until its time was over; "" for all other lines."""
    found = _EXCEPTION.search(text) if _OTHER_WAITS.search(text) is None else None
    waited = _WAITED.search(found[2]) if found is not None else None
    return (waited[1] or waited[2]) if waited is not None else ""


def rank_of(text: str) -> str:
    """The rank that a launcher or torch's hook puts before an exception, as digits; "" for other lines."""
    found = _EXCEPTION.search(text)
    if found is not None:
        before = text[: found.start(1)]
        named = _UNCAUGHT.search(before) or _SRUN.match(before)
        return named[1] if named is not None else ""
    lone = _LONE.search(text)
    if lone is None:
        return ""
    ranked = _UNCAUGHT.search(text[: lone.start(1)]) if lone[1] else None
    return lone[2] or (ranked[1] if ranked is not None else "")


def _how_of_signal(text: str) -> str:
    """How the process ended that torch's SignalException names, "" where the text is none. SIGTERM came from outside:
    what a launcher sends to its own processes raises no such exception in itself."""
    found = _GOT_SIGNAL.match(text)
    if found is None:
        return ""
    how = how_of_code(-int(found[1]))
    return "stopped" if how == "terminated" else how
