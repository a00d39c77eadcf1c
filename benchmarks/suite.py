"""CPU time of the suite by test file: run pytest with this module as a plugin, then print its table.

    pytest -q -n 0 -p benchmarks.suite tests/cli        writes .pytest_cache/suite-cpu.tsv
    python -m benchmarks.suite                          the files that cost most

A second column is the CPU of processes that a test started and waited for; those that `tests.program.run` forks count
there too. Measure with one process (`-n 0`): workers would write over each other's lines.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path

import pytest

FILE = Path(".pytest_cache", "suite-cpu.tsv")
_TICKS = os.sysconf("SC_CLK_TCK")
_SHOWN = 40


def _forked_s() -> float:
    """CPU seconds of what the server of forks started and reaped, and of itself; 0 before it starts."""
    pid = getattr(forkserver._forkserver, "_forkserver_pid", None)
    with suppress(OSError):
        if pid is not None:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return sum(map(int, fields[11:15])) / _TICKS
    return 0.0


def used_s() -> tuple[float, float]:
    """CPU seconds so far of this process, and of those it started."""
    times = os.times()
    return times.user + times.system, times.children_user + times.children_system + _forked_s()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    own, started = used_s()
    try:
        return (yield)
    finally:
        after = used_s()
        with FILE.open("a") as file:
            file.write(f"{item.nodeid.partition('::')[0]}\t{after[0] - own:.3f}\t{after[1] - started:.3f}\n")


def pytest_sessionstart() -> None:
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("")


def table(lines: Iterable[str]) -> str:
    """The files that cost most, a line each: seconds in all, in processes that were started, tests, file."""
    sums: dict[str, tuple[float, float, int]] = defaultdict(lambda: (0.0, 0.0, 0))
    for line in lines:
        file, own, started = line.rstrip("\n").split("\t")
        total, forked, count = sums[file]
        sums[file] = total + float(own) + float(started), forked + float(started), count + 1
    ordered = sorted(sums.items(), key=lambda each: -each[1][0])
    rows = [f"{total:8.1f} {forked:8.1f} {count:6}  {file}" for file, (total, forked, count) in ordered[:_SHOWN]]
    seconds, tests = sum(each[0] for each in sums.values()), sum(each[2] for each in sums.values())
    return "\n".join([f"{'CPU s':>8} {'started':>8} {'tests':>6}  file", *rows, f"{seconds:8.1f} s, {tests} tests"])


if __name__ == "__main__":
    with Path(sys.argv[1] if len(sys.argv) > 1 else FILE).open() as opened:
        print(table(opened))
