"""Settings that commands, traces of shells and dumps of the environment give to the processes whose lines follow them.

A file is read as the shell that wrote it: what it exports holds until it unsets it, what stands in a command holds for
that program. Where the lines leave open which value a process met, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from topodiag.evidence.assignments import COMMANDED, Scope, stated_in
from topodiag.evidence.nccl_log.grammar.stated import COMMAND
from topodiag.evidence.nccl_log.rebuild.frame import Frame
from topodiag.evidence.nccl_log.rebuild.members import Processes
from topodiag.evidence.nccl_log.tables.facts import Table
from topodiag.lazy import dataclass
from topodiag.model.job import GivenSetting
from topodiag.model.provenance import MAX_QUOTE, Origin

_MOST = 1000
"""Commands of one file that are read: a loop over benchmarks has some dozens."""


@dataclass(frozen=True, slots=True)
class _Command:
    offset: int
    scope: Scope
    program: str
    settings: Sequence[tuple[str, str]]
    count: int
    origin: Origin


def commanded(frame: Frame, processes: Processes) -> Mapping[int, Mapping[str, GivenSetting]]:
    """By process, the settings in force at its first line by the commands above it in its own file."""
    rows = frame["text"]
    chosen = np.flatnonzero(rows.is_word("kind", COMMAND))
    if not len(chosen):
        return {}
    files = frame["threads"]["file"][rows["thread"][chosen]]
    by_process: dict[int, Mapping[str, GivenSetting]] = {}
    firsts = _firsts(frame, processes)
    for file in sorted(set(files.tolist())):
        commands = _commands(frame, rows, chosen[files == file].tolist()[:_MOST])
        for (at, process), offset in firsts.items():
            if at == file and process not in by_process:
                by_process[process] = _in_force([command for command in commands if command.offset < offset])
    return by_process


def _firsts(frame: Frame, processes: Processes) -> dict[tuple[int, int], int]:
    """By file and process, the offset of its first line that speaks of it."""
    firsts: dict[tuple[int, int], int] = {}
    for table in ("text", "init"):
        rows = frame[table]
        files, offset = frame["threads"]["file"][rows["thread"]], rows["offset"]
        owner = processes.of(rows["thread"], offset)
        order = np.lexsort((offset, owner, files))
        order = order[owner[order] >= 0]
        new = np.flatnonzero((np.diff(files[order], prepend=-1) != 0) | (np.diff(owner[order], prepend=-1) != 0))
        for row in order[new].tolist():
            key = int(files[row]), int(owner[row])
            firsts[key] = min(int(offset[row]), firsts.get(key, int(offset[row])))
    return firsts


def _commands(frame: Frame, rows: Table, chosen: Iterable[int]) -> list[_Command]:
    commands = []
    for row in chosen:
        text = rows.word("text", row)
        if (stated := stated_in(text)) is not None:
            origin = frame.origin(rows, row, text[:MAX_QUOTE])
            commands.append(_Command(int(rows["offset"][row]), *stated, int(rows["count"][row]), origin))
    return sorted(commands, key=lambda command: command.offset)


def _in_force(commands: Sequence[_Command]) -> dict[str, GivenSetting]:
    """What holds below these commands. A line that stands several times keeps its first place only: beside another line
    for the same variable it leaves open which was the last. So do two values that no shell's trace orders."""
    shell: dict[str, GivenSetting] = {}
    run: dict[str, dict[str, GivenSetting]] = {}
    values: dict[str, set[str]] = {}
    echoed: set[str] = set()
    repeated: set[str] = set()
    for command in commands:
        names = {name: GivenSetting(name, value, COMMANDED, command.origin) for name, value in command.settings}
        if command.scope is Scope.RUN:
            run[command.program] = names
        elif command.scope is Scope.ECHO:
            echoed |= names.keys()
        else:
            shell |= {
                name: given for name, given in names.items() if command.scope is Scope.SHELL or name not in echoed
            }
            for name, given in names.items():
                values.setdefault(name, set()).add(given.value)
        if command.count > 1:
            repeated |= names.keys()
    several = {name for name, texts in values.items() if len(texts - {""}) > 1 or (len(texts) > 1 and name in repeated)}
    in_force = {name: given for name, given in shell.items() if name not in several}
    for each_run in run.values():
        in_force |= each_run
    return {name: given for name, given in in_force.items() if given.value}
