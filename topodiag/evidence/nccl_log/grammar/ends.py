"""Rows and lists by which launchers and frameworks say that a process ended, or for which ranks others wait.

Their fixed sentences are entries of the catalogue (launcher.toml, process.toml); here stand those with structure: two
fingerprints on one line, Horovod's lists of ranks, rows of `kubectl get pods`, the summary of torchrun.

SOURCE: torch distributed/elastic/multiprocessing/errors.py, distributed/c10d/{Utils.hpp, ProcessGroupWrapper.cpp};
Horovod's stall_inspector.cc; kubectl pkg/printers.

Functions of NCCL and RCCL in stack traces: glibc's and UCX' backtrace, py-spy's, gdb's, lldb's, Abseil's and glog's.

SOURCE: the forms of these tools; NCCL src/init.cc (commReclaim, commCleanup, commFree), src/proxy.cc, src/ras/.

Exceptions by their names, of any Python program: which one, with which message, and whether nobody caught it.

    [rank3]: AssertionError                                  Python, with the rank that torch puts in front
    2025-10-31 03:11:02 - train - ERROR - MemoryError        the same, by a logger
    torch.OutOfMemoryError: CUDA out of memory. ..           with its module and a message

The traceback with which a text ends: of a process that nobody started again, since nothing of a program follows it.

SOURCE: CPython Lib/traceback.py, Lib/threading.py (excepthook), Lib/multiprocessing/process.py; torch
distributed/elastic/multiprocessing/api.py (SignalException), c10/cuda/CUDAException.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from topodiag.evidence.nccl_log.grammar import job_sentences
from topodiag.evidence.nccl_log.grammar.job_sentences import how_of_code
from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.lazy import dataclass, regex
from topodiag.words.colours import without_colours

_FRAME = compiled(
    r"lib[nr]ccl[\w.\-]{0,40}\((\w{2,100})\+0x"
    r"|\b(\w{2,100}) \([^\s()]{0,200}?lib[nr]ccl\.so(?:\.(\d{1,2}\.\d{1,2}\.\d{1,2}))?\)"
    r"|0x[0-9a-f]{6,16} ?(ras\w{2,80}|(?:n|ms)ccl\w{2,80}) ?\(\)"
    r"|@ {1,16}0x[0-9a-f]{6,16} {1,16}(?:(?:\(unknown\)|\d{1,9}) {1,16})?"
    r"(ras[A-Z]\w{1,80}|(?:n|ms)ccl\w{2,80}|SaveProxy)\b"
    r"|^\s{0,8}#\d{1,3} {1,4}(?:0x[0-9a-f]{6,18} in )?(ras[A-Z]\w{1,80}|(?:n|ms)ccl\w{2,80}|SaveProxy) ?\("
    r"|^\s{0,8}(ras[A-Z]\w{1,80}|(?:n|ms)ccl\w{2,80}|SaveProxy)\([^()]{0,400}\) \(lib[nr]ccl\.so"
    r"|\blib[nr]ccl\.so[.\d]{0,12}`(\w{2,100})"
    r"|^\s{0,8}#\d{1,3} {1,4}(?:0x[0-9a-f]{6,18} in )?(\w{2,100})(?:\([^()]{0,200}\))? \([^()]{0,400}\) from "
    r"\S{0,200}\blib[nr]ccl\.so"
    r"|^\s{0,8}(comm(?:Reclaim|Cleanup|Free)) \((?:src/)?init\.cc:\d{1,6}\)"
)
_LIBRARY = 3
"""The group that holds the version in the library's file name; each other one is a function."""
FRAME_WORDS = (
    b"libnccl",
    b"librccl",
    b"0x00000",
    b" in nccl",
    b" in msccl",
    b"  msccl",
    b" in ras",
    b" in SaveProxy",
    b"  nccl",
    b"init.cc:",
)
"""A line without any of these is none of theirs."""


def frame_of(text: str) -> tuple[str, str] | None:
    """Function and version of the library, "" where the line has none; None for all other lines."""
    match = _FRAME.search(text)
    if match is None:
        return None
    symbol = next((name for at, name in enumerate(match.groups(), 1) if name and at != _LIBRARY), "")
    return symbol, match[_LIBRARY] or ""


_EXCEPTION = compiled(
    r"(?:^|[\s:\]\"'])((?:[A-Za-z_]\w{0,60}\.){0,8}_?[A-Z]\w{0,60}(?:Error|Exception|Interrupt)): (\S.{0,1500})$"
)
_UNCAUGHT = compiled(r"\[rank\d{1,9}\]: *$")
"""Torch's hook for what nobody caught puts its rank before each line."""
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
    r"|(\[rank\d{1,6}\]:)\s{0,4}((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception))\s*$"
)
"""Names that Python's own statements raise alone; others only where torch's hook for what nobody caught prints them: a
list of names is no traceback."""
_GOT_SIGNAL = compiled(r"Process \d{1,9} got signal: (\d{1,2})\b")
"""torch distributed/elastic/multiprocessing/api.py: what the launcher raises where a signal ends it."""
EXCEPTION_WORDS = (
    b"Error", b"Exception", b"Interrupt: ", b"AssertionError", b"StopIteration",
)  # fmt: skip
"""A line without any of these names no exception."""


def lone_of(text: str) -> dict[str, str] | None:
    """An exception without a message, as `exception_of` gives it; None for all other lines."""
    match = _LONE.search(text)
    if match is None:
        return None
    name = (match[1] or match[3]).rsplit(".", 1)[-1]
    uncaught = match[2] or _UNCAUGHT.search(text[: match.start(1)])
    return {"how": "exception", "what": name, "message": "", "uncaught": "1" if uncaught else ""}


def exception_of(text: str) -> dict[str, str] | None:
    """`what`, `message` and `uncaught` of an exception that nothing else explains; None for all other lines. One whose
    message is another exception stands for that one."""
    match = _EXCEPTION.search(text)
    if match is None or (_OF_OTHERS.search(text) and not match[1].endswith(("ImportError", "ModuleNotFoundError"))):
        return None
    if match[1].endswith("SignalException") and (signal := _GOT_SIGNAL.match(match[2])) is not None:
        return {"how": how_of_code(-int(signal[1]))}
    root = _EXCEPTION.match(match[2]) or match
    return {
        "how": "exception",
        "what": root[1].rsplit(".", 1)[-1],
        "message": root[2][:200],
        "uncaught": "1" if _UNCAUGHT.search(text[: match.start(1)]) else "",
    }


LIMIT = 2000
"""Characters that are kept of such a line: torch prints two fingerprints on one."""

_POD = compiled(
    r"^\s{0,8}(?:\S{1,80}\s{1,60})?(\S{1,253})\s{1,60}\d{1,3}/\d{1,3}\s{1,60}(?:Init:)?(CrashLoopBackOff|Error|OOMKilled"
    r"|Evicted|ErrImagePull|ImagePullBackOff|(?:CreateContainer|RunContainer|UnexpectedAdmission)Error"
    r"|ContainerCannotRun|NodeLost)\s{1,60}\d"
)
"""A row of `kubectl get pods`: name, ready, status, restarts."""
_POD_STATUS = {"OOMKilled": "memory", "Evicted": "evicted", "NodeLost": "node failure", "CrashLoopBackOff": "died",
               "Error": "died"}  # fmt: skip
_DIED = compiled(
    r"\b(?i:worker|(?:sub)?process(?:es)?|actor|task|rank|trainer|engine ?core|learner|replica|proc)s?\b[^.;:\n]{0,60}?"
    r"\b(?:(?:has |was |had )?died\b(?! down| out| away)|was killed\b|crashed\b|unexpectedly exit(?:s|ed)\b"
    r"|exited unexpectedly\b|terminated unexpectedly\b|is dead\b)"
)
"""That a process of the job is gone, in any launcher's words, and not how."""
_NOT_DIED = regex(
    r"\b(?:if|when|in case|unless|whether|until|before|may|might|could|would|no|not|never)\b|\?"
    r"|\b(?:that|which) (?:(?:was|has|had|is) )?(?:killed|died|crashed|dead)\b"
    r"|(?-i:\b[a-z_][\w.]{0,60})\([\"'`]",
    re.IGNORECASE,
)
"""Suppositions, what describes any process, and a call in the source of a program that would print it."""
_SUMMARY_RANK = compiled(r"(?:^|[\s:\]])rank\s{1,8}: (\d{1,9}) \(local_rank: \d{1,9}\)")
_SUMMARY_HOST = compiled(r"(?:^|[\s:\]])host\s{2,8}: (\S{1,120})\s*$")
_MISSING = compiled(r"(?:^|[\s:>])Missing ranks:\s*$")
"""Horovod 0.20 and later: the lines below name a rank each."""
_STALLED = compiled(r"^(.{0,300}?) ?\[missing ranks: ?([\d, ]{1,2000})\]")
_MISSED = compiled(r"^\s{0,8}missing ranks: \{([\d, ]{1,2000})\}\s*$")
"""torch's analyzer of flight recorder dumps (torch/distributed/flight_recorder, fr_trace)."""
_READY = compiled(r"(\S{1,200}) \[ready ranks: ?([\d, ]{1,2000})\]")
"""Horovod before 0.20 names the ranks that came: who did not is what their numbers leave out."""
MOST_READY = 1 << 16
_FINGERPRINTS = compiled(
    r"mismatch between collectives on ranks\. Rank (\d{1,9}) is running collective: CollectiveFingerPrint\("
    r"(.{1,900}?)\), but Rank (\d{1,9}) is running collective: "
    r"(?:CollectiveFingerPrint\((.{1,900}?)\)|([A-Z_]{2,40})\b)"
)
_INCONSISTENT = compiled(
    r"mismatch between collectives on ranks\. Rank (\d{1,9}) is running inconsistent collective: "
    r"CollectiveFingerPrint\((.{1,900}?)\)"
)
"""torch 1.11 and earlier name one side."""
_PART = compiled(r"(SequenceNumber|OpType|TensorShape|TensorDtypes)=(\[[\d, ]{0,200}\]|\w{1,40}?)(?=OpType=|[,)]|$)")

WORDS = (
    *EXCEPTION_WORDS, *FRAME_WORDS, b"    @ ", b"PC: @", b"BackOff", b"OOMKilled", b"Evicted", b"NodeLost",
    b"ErrImagePull", b"ContainerCannotRun", b"unexpectedly", b"died", b"was killed", b" crashed", b" is dead",
    b"issing ranks", b"ready ranks", b"between collectives", b"(local_rank: ", b"host  ",
)  # fmt: skip
"""A line without any of these is none of theirs."""


def tasks_of(text: str) -> str:
    """The one task of which srun says how it ended, as digits; "" for other lines."""
    tasks = job_sentences.tasks_of(text)
    return tasks if tasks.isdecimal() and len(tasks) < 10 else ""


def end_of(text: str) -> tuple[str, dict[str, str]] | None:
    """Kind (`ended`, `stalled`, `mismatch`) and what the line names; None for all others.

    `how` of an end: no room, memory, limit, preempted, evicted, node failure, cancelled, stopped, crash, exception,
    fatal, killed, aborted, hung up, exit, died, not launched, loader, port taken, or context (a line of
    torch's summary that names rank or host).
    """
    match = _FINGERPRINTS.search(text)
    if match is not None:
        return "mismatch", _fingerprints(match)
    match = _INCONSISTENT.search(text)
    if match is not None:
        return "mismatch", {"ranks": match[1], "one": _words(match[2])}
    match = _STALLED.search(text)
    if match is not None:
        return "stalled", {"ranks": match[2].replace(" ", ""), "op": match[1].strip()[-120:]}
    waited = job_sentences.stalled_of(text)
    if waited is not None:
        return "stalled", waited
    match = _MISSED.match(text)
    if match is not None:
        return "stalled", {"ranks": match[1].replace(" ", ""), "op": ""}
    match = _READY.search(text)
    if match is not None:
        return "stalled", {"ranks": _left_out(match[2]), "op": match[1][-120:]}
    if _MISSING.search(text):
        return "stalled", {"ranks": "", "op": ""}
    return _ended(text)


def _ended(text: str) -> tuple[str, dict[str, str]] | None:
    named = job_sentences.end_of(text) or lone_of(text) or _of_row(text) or _of_context(text) or exception_of(text)
    return ("ended", named) if named is not None else None


def _of_row(text: str) -> dict[str, str] | None:
    pod = _POD.match(text)
    if pod is not None:
        return {"how": _POD_STATUS.get(pod[2], "not launched"), "what": pod[2] if pod[2] != "Error" else ""}
    died = _DIED.search(text)
    return {"how": "died"} if died is not None and _NOT_DIED.search(text[: died.end()]) is None else None


def _of_context(text: str) -> dict[str, str] | None:
    """Lines that only name who ended: a function of NCCL in a stack, a rank or host of a summary."""
    frame = frame_of(text)
    if frame is not None:
        return {"how": "context", "symbol": frame[0], "so": frame[1]}
    match = _SUMMARY_RANK.search(text)
    if match is not None:
        return {"how": "context", "named_rank": match[1]}
    match = _SUMMARY_HOST.search(text)
    return {"how": "context", "host": match[1]} if match is not None else None


def _fingerprints(match: re.Match[str]) -> dict[str, str]:
    details = {"ranks": f"{match[1]},{match[3]}"}
    for side, text in (("one", match[2]), ("other", match[4] or f"OpType={match[5]},")):
        parts = dict(_PART.findall(text))
        details[side] = _words(text)
        if "SequenceNumber" in parts:
            details[f"{side}_seq"] = parts["SequenceNumber"]
    return details


def _words(fingerprint: str) -> str:
    """Operation, shape and type of a fingerprint, as far as it has them."""
    parts = dict(_PART.findall(fingerprint))
    return " ".join(word for name in ("OpType", "TensorShape", "TensorDtypes") if (word := parts.get(name, "")))


def _left_out(ready: str) -> str:
    """The ranks below the highest that a list leaves out; "" where it leaves out none: the missing one is above."""
    came = {int(word) for word in re.findall(r"\d{1,6}", ready)}
    highest = max(came, default=0)
    if highest >= MOST_READY:
        return ""
    return ",".join(str(rank) for rank in range(highest) if rank not in came)


# --- the traceback with which a text ends ---------------------------------------------------------------------------

MOST_OF_END = 1 << 16
"""Bytes of a text's end that hold its last traceback and what a launcher prints below it."""
_MOST_EPILOGUE = 40
"""Lines that launchers, loggers of experiments and job scripts print when a program is gone."""
_TRACEBACK = "Traceback (most recent call last):"
_RAISED = compiled(r"((?:[A-Za-z_]\w{0,80}\.){0,10}([A-Za-z_]\w{0,80}))(?::(?: (\S.{0,1500}))?)?$")
_IN_FILE = compiled(r"\s{1,8}File \"([^\"]{1,1000})\", line (\d{1,9})\b")
_PACKAGES = ("site-packages/", "dist-packages/", "/lib/python3", "/lib64/python3")
"""What the path of a file of Python's or of an installed package holds."""
_EPILOGUE = compiled(
    r"\s|[-=*#_~]{3,}\s*$"
    r"|(?:srun|slurmstepd|mpirun|mpiexec|prterun|torchrun|wandb|make(?:\[\d{1,3}\])?|bash|[\w./-]{1,200}\.sh)"
    r"(?::(?! error: \*.{1,200}TIME LIMIT)| \[)"
    r"|(?:real|user|sys)\s{1,8}\d|Command exited with |Aborted\b|\[\d{1,4}\][+-]?\s{1,8}Exit |ERROR conda\.cli"
    r"|terminate called |CUDA kernel errors might |For debugging consider passing CUDA|Compile with `TORCH_USE"
    r"|Device-side assertion tracking |Search for `cuda|Hint: If you want to see a list of allocated"
    r"|Set the environment variable HYDRA_FULL_ERROR"
    r"|\S{0,200}resource_tracker\b|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) .{0,40}\d\d:\d\d:\d\d"
    r"|(?i:\W{0,8}(?:the )?(?:job|script|program|process|run)\b.{0,60}\b(?:end|finish|exit|fail|stopp?)(?:s|ed)?\b"
    r"|\W{0,8}(?:end(?:ed)?|finished|exit(?:ed)?|stopped)\b.{0,20}\b(?:at|time|date|code|status|on)\b|\W{0,8}elapsed\b)"
)
"""The begin of a line that a program's end leaves: the launcher, the shell, the job's script, CUDA's hints, and lines
that an exception's message goes on with (indented)."""
_TIMES = ("real\t", "user\t", "sys\t")
"""What the shell's `time` prints below the program that it ran."""
_LINKS = ("During handling of the above exception, another", "The above exception was the direct cause of")
_LIVED_ON = compiled(
    r"\b(?:ERROR|WARN(?:ING)?|CRITICAL|EXCEPTION|FAIL)\b|Exception (?:in thread|ignored)|Process \S{1,80}:\s*$"
    r"|>>> |In \[\d|[Rr]etry|[Rr]estart|^\s{0,4}(?:```|~~~)"
)
"""What stands right above a traceback that did not end the program: a logger's line, a thread, a child process, an
interpreter's prompt, a test, a document's fence."""
_BY_HAND = frozenset({
    "KeyboardInterrupt", "SystemExit", "GeneratorExit", "BdbQuit", "SignalException", "ChildFailedError"
})  # fmt: skip
"""Exceptions of who stops a program by hand, or of a launcher whose process ended."""


@dataclass(frozen=True, slots=True)
class LastTraceback:
    """The exception of the traceback with which a text ends; of several in a row the first, from which the others
    follow.
    `text` is its line, `line` counts lines from the begin of what was looked at, `frame` is file and line of the
    innermost frame of the program's own, "" where all are of packages; `caught` says that a logger, a thread or an
    interpreter printed it, and the program went on."""

    text: str
    name: str
    message: str
    line: int
    frame: str
    caught: bool


def last_traceback(end: bytes) -> LastTraceback | None:
    """The traceback with which a text ends, from its last bytes; None where the text goes on below it, and where
    somebody stopped the program."""
    texts = [without_colours(line.rstrip(b"\r")).decode("utf-8", "replace") for line in end.split(b"\n")]
    last = _above_epilogue(texts, _timed(texts) or len(texts) - 1)
    head, is_main = _head_of(texts, last), False
    while head is not None and (raised := _RAISED.match(texts[last])) is not None and raised[2] not in _BY_HAND:
        above = _not_blank(texts, head - 1)
        linked = texts[above].startswith(_LINKS)
        upper = _above_epilogue(texts, _not_blank(texts, above - 1) if linked else above)
        if (upper_head := _head_of(texts, upper)) is None:
            caught = not is_main and _LIVED_ON.search(texts[above]) is not None
            quoted = texts[last].replace("\\n", "\n").split("\n")
            frames = [frame for text in (*texts[head:last], *quoted) if (frame := _IN_FILE.match(text)) is not None]
            own = [f"{frame[1]}:{frame[2]}" for frame in frames if not any(map(frame[1].__contains__, _PACKAGES))]
            return LastTraceback(texts[last], raised[2], raised[3] or "", last, own[-1] if own else "", caught)
        last, head, is_main = upper, upper_head, is_main or not linked
    return None


def _timed(texts: Sequence[str]) -> int:
    """The line of the shell's `time` among the last ones, below which only the script goes on; 0 without."""
    lines = range(len(texts) - 3, max(len(texts) - _MOST_EPILOGUE, 0), -1)
    return next((line for line in lines if all(map(str.startswith, texts[line : line + 3], _TIMES))), 0)


def _above_epilogue(texts: Sequence[str], at: int) -> int:
    """The line at or above `at` that is none of a program's end; the last looked at where all are."""
    for line in range(at, max(at - _MOST_EPILOGUE, 0), -1):
        if texts[line].strip() and _EPILOGUE.match(texts[line]) is None:
            return line
    return max(at - _MOST_EPILOGUE, 0)


def _head_of(texts: Sequence[str], last: int) -> int | None:
    """The head of the traceback whose exception stands on this line; None where no frame stands above the line."""
    head = last - 1
    while head > 0 and texts[head].startswith("  "):
        head -= 1
    framed = 0 <= head < last - 1 and _IN_FILE.match(texts[head + 1])
    return head if framed and texts[head] == _TRACEBACK else None


def _not_blank(texts: Sequence[str], at: int) -> int:
    """The line at or above `at` that is neither blank nor a rule, 0 where none is."""
    return next((line for line in range(at, 0, -1) if texts[line].strip("-=* \t")), 0)
