"""`py-spy dump`: the main thread of each process, of one or of several dumps one behind the other.

    == rank 0 ==
    Process 5121: python train.py
    Thread 0x7FA6E7C01740 (idle): "MainThread"
        wait (threading.py:302)
        get (queue.py:170)

The rank is that of a line or a file that names it (`rank 0`, `rank0.txt`), or of the process's title (`Worker_TP0`).
"""

from __future__ import annotations

import os
import re

from topodiag.lazy import regex
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.model.stacks import Frame, Stack

MAX_BYTES = 64 << 20
MAX_STACKS = 100_000
MAX_FRAMES = 200
MAX_LINE = 1000

_PROCESS = regex(r"Process ([0-9]{1,10}): (\S.{0,300})\Z")
_THREAD = regex(r"Thread (?:0x)?[0-9A-Fa-f]{1,16} \((?:active|idle)(?:\+gil)?\)(?:: \"([^\"]{0,80})\")?\s*\Z")
_FRAME = regex(r"([\w.<>$~]{1,200}) \(([^()\n]{1,300}?)(?::[0-9]{1,7})?\)\Z")
_RANK = regex(r"\brank[ _=:-]{0,2}([0-9]{1,6})(?![0-9])", re.IGNORECASE)
_TITLE = regex(r"\b(?:Worker_)?((?:TP|PP|DP|EP)[0-9]{1,4}(?:_(?:TP|PP|DP|EP)[0-9]{1,4}){0,3})\b")
_MAIN = "MainThread"


def read_stacks(text: str, source: str) -> tuple[Stack, ...]:
    """The stacks of main threads in a text; threads without a name count where no thread of the process has one."""
    of_file = _RANK.search(os.path.basename(source))
    stacks: list[Stack] = []
    rank, pid, label = _number(of_file), -1, ""
    frames: list[Frame] | None = None
    at: Origin | None = None

    def close() -> None:
        if frames and len(stacks) < MAX_STACKS:
            stacks.append(Stack(pid, rank, label, tuple(frames), at))

    for number, whole in enumerate(text.split("\n"), 1):
        line = whole[:MAX_LINE].strip(" \t>|\r")
        if (process := _PROCESS.match(line)) is not None:
            close()
            frames, pid = None, int(process[1])
            title = _TITLE.search(process[2])
            label = title[1] if title is not None else ""
        elif (thread := _THREAD.match(line)) is not None:
            close()
            wanted = thread[1] in (None, _MAIN) and not any(
                stack.pid == pid >= 0 and stack.rank == rank for stack in stacks
            )
            frames, at = ([], Origin(source, number, line[:MAX_QUOTE])) if wanted else (None, None)
        elif frames is not None and (frame := _FRAME.match(line)) is not None:
            if len(frames) < MAX_FRAMES:
                frames.append(Frame(frame[1], frame[2]))
        elif line and _FRAME.match(line) is None:
            close()
            frames = None
            if (named := _RANK.search(line)) is not None and len(line) < MAX_QUOTE:
                rank, pid, label = _number(named), -1, ""
    close()
    return tuple(stacks)


def _number(document: re.Match[str] | None) -> int:
    return int(document[1]) if document is not None else -1
