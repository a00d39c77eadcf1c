"""How a process ended by its exit code or its signal, in the words of `ends.end_of`."""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.numbers import compiled

_SIGNALS = {
    1: "hung up", 2: "cancelled", 6: "aborted", 7: "crash", 8: "crash", 9: "killed", 11: "crash", 15: "terminated",
}  # fmt: skip
_GOT_SIGNAL = compiled(r"Process \d{1,9} got signal: (\d{1,2})\b")
"""torch distributed/elastic/multiprocessing/api.py: what the launcher raises where a signal ends it."""


def how_of_code(code: int) -> str:
    """What an exit code tells: Python's is the negative signal, a shell's is 128 and the signal."""
    return _SIGNALS.get(-code if code < 0 else code - 128 if code > 128 else 0, "exit")


def how_of_signal(text: str) -> str:
    """How the process ended that torch's SignalException names, "" where the text is none. SIGTERM came from outside:
    what a launcher sends to its own processes raises no such exception in itself."""
    found = _GOT_SIGNAL.match(text)
    if found is None:
        return ""
    how = how_of_code(-int(found[1]))
    return "stopped" if how == "terminated" else how
