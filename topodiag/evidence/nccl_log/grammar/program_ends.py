"""How interpreters, shells and launchers say of one process that it ended: exceptions without a message, interrupts by
hand, and signals by name or number.

    [rank3]: AssertionError                                  Python, with the rank that torch puts in front
    2025-10-31 03:11:02 - train - ERROR - MemoryError        the same, by a logger
    KeyboardInterrupt                                        somebody pressed Ctrl-C
    .. Command '['python', 't.py']' died with <Signals.SIGKILL: 9>.           Python's subprocess, so accelerate
    mpirun noticed that process rank 3 with PID 71 on node n2 exited on signal 9 (Killed).
    =   RANK 3 PID 71 RUNNING AT n2                          MPICH's and Intel MPI's Hydra
    =   KILLED BY SIGNAL: 9 (Killed)
    pdsh@n1: n2: ssh exited with exit code 137               DeepSpeed's launcher

SOURCE: CPython Lib/traceback.py, Lib/subprocess.py; torch multiprocessing/spawn.py; Open MPI help-orte-odls-base.txt;
Hydra tools/bootstrap and ui/utils; pdsh src/pdsh/dsh.c; Slurm src/srun/libsrun/launch.c; bash jobs.c, zsh.
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.nccl_log.grammar.signals import how_of_code

_NUMBERS = {
    "SIGHUP": 1, "SIGINT": 2, "SIGABRT": 6, "SIGBUS": 7, "SIGFPE": 8, "SIGKILL": 9, "SIGSEGV": 11, "SIGTERM": 15,
}  # fmt: skip
_HEAD = r"^\s{0,8}(?:.{0,160}?(?:\]:?|[\w)]:|>|\w -)\s{1,4})?"
"""What stands before an exception's name: nothing, a rank, or what a logger puts there."""
_INTERRUPTED = compiled(rf"{_HEAD}(?:\^C){{0,3}}KeyboardInterrupt:?\s*$|\bDetected KeyboardInterrupt\b")
_BARE = compiled(
    rf"{_HEAD}(AssertionError|MemoryError|NotImplementedError|RecursionError|StopIteration)\s*$"
    r"|\[rank(\d{1,6})\]:\s{0,4}((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception))\s*$"
)
"""Names that Python's own statements raise alone; others only where torch's hook for what nobody caught prints them: a
list of names is no traceback."""
_RANK = compiled(r"\[rank(\d{1,6})\]: *$")
_BY_NUMBER = compiled(
    r"\bprocess rank (?P<rank>\d{1,9}) with PID \d{1,9} on node (?P<host>\S{1,120}) exited on signal (?P<mpi>\d{1,3})\b"
    r"|^=\s{1,8}KILLED BY SIGNAL: (?P<hydra>\d{1,3})\b|\bEXIT STRING: .{1,60}\(signal (?P<string>\d{1,3})\)"
    r"|\bdied with <Signals\.SIG\w{1,12}: (?P<python>\d{1,3})>"
)
_BY_NAME = compiled(r"\bprocess \d{1,9} terminated with signal (SIG[A-Z]{2,6})\b")
_BY_CODE = compiled(
    r"\bpdsh@[\w.-]{1,120}: (?P<host>[\w.-]{1,120}): \w{1,12} exited with exit code (?P<code>\d{1,3})\s*$"
)
_ABNORMAL = compiled(r"\bsrun: .{0,80}\btasks? ([\d,\-\[\]]{1,200}): exited abnormally")
_KILLED = compiled(r"^zsh: killed {1,8}\S")
_HYDRA = compiled(r"^=\s{1,8}(?:RANK (\d{1,7}) )?PID \d{1,9} RUNNING AT ([\w.-]{1,120})\s*$")
_UNREACHED = 255
"""What ssh returns where it did not come to the host: no end of a program."""

WORDS = (
    b"KeyboardInterrupt", b"AssertionError", b"MemoryError", b"NotImplementedError", b"RecursionError",
    b"StopIteration", b"exited on signal", b"KILLED BY SIGNAL", b"EXIT STRING", b"died with <Signals",
    b"terminated with signal SIG", b"exited with exit code", b"exited abnormally",
    b"zsh: killed", b" RUNNING AT ",
)  # fmt: skip
"""A line without any of these is none of theirs."""


def end_of(text: str) -> dict[str, str] | None:
    """`how` of an end and what the line names, as `ends.end_of` gives it; None for all other lines."""
    if is_interrupt(text):
        return {"how": "cancelled", "what": "KeyboardInterrupt"}
    found = _BY_NUMBER.search(text)
    if found is not None:
        number = found["mpi"] or found["hydra"] or found["string"] or found["python"]
        return _by(-int(number), found["rank"], found["host"])
    named = _BY_NAME.search(text)
    if named is not None and named[1] in _NUMBERS:
        return _by(-_NUMBERS[named[1]])
    found = _BY_CODE.search(text)
    if found is not None:
        code = int(found["code"])
        return _by(code, host=found["host"]) if 0 < code < _UNREACHED else None
    return _bare(text) or _of_launcher(text)


def is_interrupt(text: str) -> bool:
    """Whether a line says that somebody interrupted a program."""
    return "KeyboardInterrupt" in text and _INTERRUPTED.search(text) is not None


def rank_of(text: str) -> str:
    """The rank that torch puts before an exception without a message, as digits; "" for other lines."""
    found = _BARE.search(text)
    if found is None:
        return ""
    ranked = _RANK.search(text[: found.start(1)]) if found[1] else None
    return found[2] or (ranked[1] if ranked is not None else "")


def _bare(text: str) -> dict[str, str] | None:
    found = _BARE.search(text)
    if found is None:
        return None
    name = (found[1] or found[3]).rsplit(".", 1)[-1]
    return {"how": "exception", "what": name, "message": "", "uncaught": "1" if rank_of(text) else ""}


def _of_launcher(text: str) -> dict[str, str] | None:
    abnormal = _ABNORMAL.search(text)
    if abnormal is not None:
        return {"how": "exit", "tasks": abnormal[1]}
    if _KILLED.search(text) is not None:
        return {"how": "killed"}
    place = _HYDRA.search(text)
    if place is None:
        return None
    return {"how": "context", "host": place[2]} | ({"named_rank": place[1]} if place[1] else {})


def _by(code: int, rank: str | None = None, host: str | None = None) -> dict[str, str]:
    """By code or negative signal. These launchers name the process that ended first, so that nobody's end aborted it,
    and who terminated it came from outside."""
    how = how_of_code(code)
    number = str(code) if code > 0 else ""
    if code < 0:
        how = {"aborted": "crash", "terminated": "cancelled"}.get(how, how)
    made = {"how": how, "code": number, "named_rank": rank or "", "host": host or ""}
    return {name: value for name, value in made.items() if value}
