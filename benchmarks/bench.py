"""Prints what `topodiag bench` takes with causes: CPU seconds and peak memory, and that more rows cost no more each.

    python benchmarks/bench.py

A hundred runs of one placement, each 65 % below the expectation (target 3 CPU s), and one run as a table of 500, 2,000
and 8,000 sizes. The machine is fixtures/nodes/dgx-h100-healthy, its run that of fixtures/tables/all-reduce-gdr-off with
other times. Each is measured in a process of its own.
"""

from __future__ import annotations

import bisect
import os
import random
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUN = ROOT / "fixtures/tables/all-reduce-gdr-off/out.txt"
MACHINE = ROOT / "fixtures/nodes/dgx-h100-healthy"
ROW = re.compile(r"^\s+\d+\s+\d+\s+float")
TIMES, RATES = (5, 9), (6, 7, 10, 11)
"""Columns of a row."""
TARGET_S = 3.0
ROWS = (500, 2_000, 8_000)


def times_as(line: str, share: float, size: int | None = None) -> str:
    """A row whose times are `share` of what they were, of another size where one is given."""
    parts = line.split()
    grown = 1.0
    if size is not None:
        grown = size / int(parts[0])
        parts[:2] = str(size), str(size // 4)
    for at in TIMES:
        parts[at] = f"{float(parts[at]) * share * grown:.2f}"
    for at in RATES:
        parts[at] = f"{float(parts[at]) / share:.2f}"
    return "  ".join(parts)


def hundred_runs() -> str:
    """The run a hundred times over, each a few percent faster or slower."""
    chance = random.Random(3)
    text = RUN.read_text().splitlines()
    return "\n".join(
        times_as(line, share) if ROW.match(line) else line
        for share in (chance.uniform(0.97, 1.03) for _ in range(100))
        for line in text
    )


def many_sizes(count: int) -> str:
    """The run with so many sizes between 1 MiB and 8 GiB, as `-i` of nccl-tests gives them."""
    text = RUN.read_text().splitlines()
    rows = [line for line in text if ROW.match(line)]
    sizes = [int(row.split()[0]) for row in rows]
    made = []
    for number in range(count):
        size = (1 << 20) + number * (((1 << 33) - (1 << 20)) // count) // 4 * 4
        made.append(times_as(rows[min(bisect.bisect_left(sizes, size), len(rows) - 1)], 1.0, size))
    first = text.index(rows[0])
    return "\n".join([*text[:first], *made, *text[text.index(rows[-1]) + 1 :]])


def measured(text: str, folder: Path) -> tuple[float, float]:
    """CPU seconds and peak memory in MB of `topodiag bench` of a text."""
    table = folder / "all_reduce.txt"
    table.write_text(text + "\n")
    arguments = [sys.executable, "-m", "topodiag", "bench", str(table), "--machine", str(MACHINE), "-o", os.devnull]
    child = os.posix_spawn(sys.executable, arguments, {**os.environ, "PYTHONPATH": str(ROOT)})
    _, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) != 1:
        raise SystemExit(f"the run is low, yet `{' '.join(arguments[1:])}` did not end with 1")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cpu, memory = measured(hundred_runs(), Path(folder))
        print(f"100 runs         {cpu:5.1f} CPU s   {memory:4.0f} MB   target {TARGET_S:g} CPU s")
        first = 0.0
        for count in ROWS:
            cpu, memory = measured(many_sizes(count), Path(folder))
            first = first or cpu
            print(f"{count:>5,} sizes      {cpu:5.1f} CPU s   {memory:4.0f} MB   x {cpu / first:.2f}")


if __name__ == "__main__":
    main()
