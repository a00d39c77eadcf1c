"""`py-spy dump`: the main thread of each process, of one or of several dumps one behind the other.

    == rank 0 ==
    Process 5121: python train.py
    Thread 0x7FA6E7C01740 (idle): "MainThread"
        wait (threading.py:302)
        get (queue.py:170)

The rank is that of a line or a file that names it (`rank 0`, `rank0.txt`), or of the process's title (`Worker_TP0`).
"""

from __future__ import annotations

from topodiag.evidence.interface import rank_of_name
from topodiag.model.diagnostics import Frame, Stack
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.words.own_data import patterns

MAX_BYTES = 64 << 20
MAX_STACKS = 100_000
MAX_FRAMES = 200
MAX_LINE = 1000

_LIKE = patterns("evidence/live/lines", "stacks")
_MAIN = "MainThread"


def read_stacks(text: str, source: str) -> tuple[Stack, ...]:
    """The stacks of main threads in a text; threads without a name count where no thread of the process has one."""
    stacks: list[Stack] = []
    rank, pid, label = -1 if (named := rank_of_name(source)) is None else named, -1, ""
    frames: list[Frame] | None = None
    at: Origin | None = None

    def close() -> None:
        if frames and len(stacks) < MAX_STACKS:
            stacks.append(Stack(pid, rank, label, tuple(frames), at))

    for number, whole in enumerate(text.split("\n"), 1):
        line = whole[:MAX_LINE].strip(" \t>|\r")
        number_of, of_process, command = line.removeprefix("Process ").partition(": ")
        if of_process and line.startswith("Process ") and number_of.isdecimal():
            close()
            frames, pid = None, int(number_of[:10])
            title = _LIKE["title"].search(command)
            label = title[1] if title is not None else ""
        elif (thread := _LIKE["thread"].match(line)) is not None:
            close()
            wanted = thread[1] in (None, _MAIN) and not any(
                stack.pid == pid >= 0 and stack.rank == rank for stack in stacks
            )
            frames, at = ([], Origin(source, number, line[:MAX_QUOTE])) if wanted else (None, None)
        elif frames is not None and (frame := _LIKE["frame"].match(line)) is not None:
            if len(frames) < MAX_FRAMES:
                frames.append(Frame(frame[1], frame[2]))
        elif line and _LIKE["frame"].match(line) is None:
            close()
            frames = None
            if (of_line := _LIKE["rank"].search(line)) is not None and len(line) < MAX_QUOTE:
                rank, pid, label = int(of_line[1]), -1, ""
    close()
    return tuple(stacks)
