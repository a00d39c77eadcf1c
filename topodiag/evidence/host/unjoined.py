"""Processes of nccl-tests that one launcher started and that each measured alone: a build without MPI.

    $ mpirun -np 2 -H n1,n2 ./build/all_reduce_perf -b 256M -e 256M -g 2
    # nThread 1 nGpus 2 ..
    #  Rank  0 Group  0 Pid   2832 on n1 device  0 [0x03]
    #  Rank  0 Group  0 Pid   3255 on n2 device  0 [0x03]

With MPI one list has all ranks of the command, and one of them is rank 0. Tests that a parallel shell starts on each
node are alone on purpose: they have no such command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from topodiag.evidence.nccl_tests.header import device_of, parameters_of

MAX_LINE = 1000
_COMMAND = re.compile(
    r"\b(?:mpirun|mpiexec(?:\.hydra)?|orterun|prun|srun)\b(?P<options>.{1,800}?)(?:[\s/]|=)\w{2,40}_perf\b"
)
_COUNT = re.compile(r"\s(?:-n|-np|--np|-c|--ntasks)[ =]?(\d{1,6})\b")
_MPI_OF_SLURM = re.compile(r"\s--mpi[= ]\w")


def unjoined(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[str, str, int, str]]:
    """What is told, words for it, number and text of the line: of numbered lines, once for each command."""
    wanted, alone = 0, 0
    first: dict[tuple[str, int], tuple[int, str]] = {}
    for number, whole in lines:
        line = whole[:MAX_LINE]
        command = _COMMAND.search(line) if "_perf" in line else None
        if command is not None:
            yield from _told(first)
            wanted, alone, first = _processes(command), 0, {}
        elif wanted > 1 and "nThread" in line and (found := parameters_of(line)) is not None:
            alone = int(found["nThread"]) * int(found["nGpus"])
        elif wanted > 1 and "Rank" in line and (row := device_of(line)) is not None and row.pid:
            if row.rank >= alone:
                wanted, first = 0, {}  # one list of several processes: they know of each other
            elif row.rank == 0:
                first.setdefault((row.host, row.pid), (number, line))
    yield from _told(first)


def _processes(command: re.Match[str]) -> int:
    """How many processes of one job a command starts; srun starts jobs of their own, too, where it names no MPI."""
    count = _COUNT.search(command["options"])
    if count is None or ("srun" in command[0][:12] and _MPI_OF_SLURM.search(command["options"]) is None):
        return 0
    return int(count[1])


def _told(first: dict[tuple[str, int], tuple[int, str]]) -> Iterator[tuple[str, str, int, str]]:
    hosts = list(dict.fromkeys(host for host, _ in first))
    if len(first) < 2 or len(hosts) < len(first):  # several of one host share its GPUs, which is told as that
        return
    number, line = list(first.values())[-1]
    words = f"{len(first)} processes of one command call themselves rank 0, on {', '.join(hosts[:4])}"
    yield "ranks-alone", words, number, line


__all__ = ["unjoined"]
