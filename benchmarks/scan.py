"""Prints what `topodiag` costs a user, as ratios taken in one run.

    python benchmarks/scan.py [--runs 15]

Whole-process wall times: the median of interleaved runs, each beside the bare interpreter's in the same round, so
that a slow moment of the machine falls on all of them. Targets: `--help` at most 120 ms over `python -c pass`, an
8-GPU bundle at most 600 ms, a live scan of a machine without GPUs at most 1500 ms. Peak memory is the child's own.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FIXTURE = "dgx-h100-healthy"
# An installed program has its bytecode; a checkout gets it in the warm-up round, unless this is set.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
TOPODIAG = shutil.which("topodiag", path=str(Path(sys.executable).parent)) or "topodiag"


def wall_ms(argv: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return (time.perf_counter() - begun) * 1000


def peak_mib(argv: list[str]) -> float:
    child = os.posix_spawn(
        argv[0],
        argv,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)],
    )
    usage: resource.struct_rusage = os.wait4(child, 0)[2]
    return usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    runs: int = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        bundle = str(Path(folder, "node.tar.gz"))
        source = Path(__file__).parent.parent / "fixtures" / "nodes" / FIXTURE
        subprocess.run(["tar", "czf", bundle, "-C", str(source), "."], check=True)
        cases: dict[str, tuple[list[str], float | None]] = {
            "python -c pass": ([sys.executable, "-c", "pass"], None),
            "topodiag --help": ([TOPODIAG, "--help"], 120),
            "topodiag explain": ([TOPODIAG, "explain"], None),
            "scan of an 8-GPU bundle": ([TOPODIAG, "scan", bundle, "--fail-on", "never"], 600),
            "  the same, --format json": ([TOPODIAG, "scan", bundle, "--format", "json"], 600),
            "scan (this machine)": ([TOPODIAG, "scan", "--fail-on", "never"], 1500),
        }
        for argv, _ in cases.values():
            wall_ms(argv)
        times: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(runs):
            for name, (argv, _) in cases.items():
                times[name].append(wall_ms(argv))
        bare = statistics.median(times["python -c pass"])
        names = ("median ms", "min", "max", "x bare", "over bare", "target", "MiB")
        print(f"{'command':28}" + "".join(f"{name:>11}" for name in names))
        for name, (argv, target) in cases.items():
            middle = statistics.median(times[name])
            figures = (f"{middle:.0f}", f"{min(times[name]):.0f}", f"{max(times[name]):.0f}", f"{middle / bare:.1f}")
            figures += (f"{middle - bare:.0f}", f"{target:.0f}" if target else "-", f"{peak_mib(argv):.0f}")
            print(f"{name:28}" + "".join(f"{figure:>11}" for figure in figures))


if __name__ == "__main__":
    main()
