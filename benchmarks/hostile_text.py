"""Prints what hostile texts cost: lines without an end, one sentence ten million times, and the like.

    python benchmarks/hostile_text.py [--scale 1.0] [--only NAME,..] [--diagnose | --storms]

The engine of sentences reads each text from a pipe's blocks, in a process of its own; with --diagnose the whole program
reads it from a file. Target: less than 400 MiB, and a time that grows as the text does. Exit code 1 above the memory.

With --storms the whole program reads 30,000 lines of one message, and a quarter of them: `ratio` says how many times as
long a line takes in the longer text, without the program's start. Exit code 1 where it is above 2.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MIB = 1 << 20
TARGET_MIB = 400
SENTENCE = b"[rank0]: slurmstepd: error: Detected 1 oom_kill event in StepId=77.0."
Blocks = Callable[[float], Iterator[bytes]]


def endless(part: bytes) -> Blocks:
    """100 MB of this without a newline."""
    return lambda scale: (part * (MIB // len(part)) for _ in range(int(100 * scale)))


def repeated(line: Callable[[int], bytes]) -> Blocks:
    """Ten million lines."""

    def blocks(scale: float) -> Iterator[bytes]:
        for first in range(0, int(1e7 * scale), 1_000):
            yield b"".join(line(at) + b"\n" for at in range(first, first + 1_000))

    return blocks


TEXTS: dict[str, Blocks] = {
    "plain": repeated(lambda at: b"2026-03-01 11:00:01,123 INFO loader.py:77 shard %08d of 4096 is loaded" % at),
    "no newline": endless(b"x"),
    "no newline, sentences": endless(SENTENCE + b" "),
    "no newline, braces": endless(b'{"a":'),
    "no newline, escapes": endless(b"\x1b["),
    "one sentence": repeated(lambda _: SENTENCE),
    "sentences that differ": repeated(lambda at: SENTENCE.replace(b"0]", b"%d]" % at)),
    "steps": repeated(
        lambda at: b" [2026-03-01 11:00:01] iteration %d/ 500 | elapsed time per iteration (ms): 1 |" % at
    ),
    "wrappers": repeated(lambda at: b"> " * 20 + b"gpu-1: " * 20 + SENTENCE),
}


STORM_LINES, PART, MOST_RATIO = 30_000, 4, 2.0
STORMS: dict[str, Blocks] = {
    "a kernel message": repeated(
        lambda at: b"[%d.000001] NVRM: Xid (PCI:0000:3b:00): 13, pid=%d, name=python, Graphics Exception" % (at, at)
    ),
    "the same kernel message": repeated(lambda _: b"[77.000001] NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU lost"),
    "an exception": repeated(lambda at: b"[rank%d]: RuntimeError: CUDA error: an illegal memory access" % (at % 512)),
    "a traceback": repeated(
        lambda at: (
            b"Traceback (most recent call last):",
            b'  File "train.py", line 9, in main',
            b"    fetch(url)",
            b"ValueError: shard %d" % at,
        )[at % 4]
    ),
    "an NCCL warning": repeated(
        lambda at: b"n1:%d:77 [%d] transport/net_ib.cc:9 NCCL WARN NET/IB : Got completion with error 12" % (at, at % 8)
    ),
    "the same NCCL warning": repeated(
        lambda _: b"n1:77:77 [0] transport/net_ib.cc:9 NCCL WARN NET/IB : Got completion with error 12"
    ),
    "a refused peer": repeated(
        lambda at: b"[W socket.cpp:663] [c10d] The client socket has failed to connect to [n1]:29500 (try %d)" % at
    ),
}


def engine_reads(name: str, scale: float) -> tuple[float, int, int]:
    """CPU seconds, peak of memory in MiB, number of events kept."""
    from topodiag.evidence.signatures.engine import read  # noqa: PLC0415 - in a process of its own

    spent = 0.0

    def timed() -> Iterator[bytes]:
        nonlocal spent
        for block in TEXTS[name](scale):
            began = time.process_time()
            yield block
            spent += time.process_time() - began

    made = read(timed(), name)
    return spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, len(made.events)


def program_reads(name: str, scale: float) -> tuple[float, int, int]:
    """The same of `topodiag diagnose FILE`, with its exit code."""
    with tempfile.TemporaryDirectory() as top:
        path = Path(top, "text.log")
        with path.open("wb") as file:
            file.writelines({**TEXTS, **STORMS}[name](scale))
        done = subprocess.run(
            [sys.executable, "-m", "topodiag", "diagnose", str(path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, check=False,
        )  # fmt: skip
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime, used.ru_maxrss >> 10, done.returncode


def draw_storms(names: list[str]) -> int:
    """Prints what a line of each storm costs; 1 where one costs more in a longer text."""

    def seconds(name: str, lines: int) -> float:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return float(pool.apply(program_reads, (name, lines / 1e7))[0])

    print(f"{'storm':24} {'CPU s':>8} {'us/line':>8} {'ratio':>6}")
    worst = 0.0
    for name in names:
        start, part, whole = (seconds(name, lines) for lines in (1_000, STORM_LINES // PART, STORM_LINES))
        first, last = part - start, whole - part  # of the lines up to a quarter, and of the rest
        per_line = last / (STORM_LINES - STORM_LINES // PART)
        ratio = per_line / max(first / (STORM_LINES // PART - 1_000), 1e-6)
        worst = max(worst, ratio if last > 1.0 else 0.0)  # less is noise of the program's start
        print(f"{name:24} {whole:8.2f} {per_line * 1e6:8.1f} {ratio:6.1f}", flush=True)
    return 1 if worst > MOST_RATIO else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--diagnose", action="store_true")
    parser.add_argument("--storms", action="store_true")
    given = parser.parse_args()
    if given.storms:
        return draw_storms([name for name in STORMS if not given.only or name in given.only.split(",")])
    names = [name for name in TEXTS if not given.only or name in given.only.split(",")]
    print(f"{'text':24} {'CPU s':>8} {'MiB':>6} {'exit code' if given.diagnose else 'events':>9}")
    worst = 0
    for name in names:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            took = pool.apply(program_reads if given.diagnose else engine_reads, (name, given.scale))
        worst = max(worst, took[1])
        print(f"{name:24} {took[0]:8.2f} {took[1]:6} {took[2]:9}", flush=True)
    return 1 if worst > TARGET_MIB else 0


if __name__ == "__main__":
    sys.exit(main())
