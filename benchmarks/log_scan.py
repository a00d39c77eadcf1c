"""Prints how fast logs are read, beside other ways of reading them, on a log that it makes.

    python benchmarks/log_scan.py [--size 1GB] [--label] [--talk 0] [--folder /tmp] [--repeat 1]

Each way runs as its own process, one after the other, on one warm file: MB of text per second of wall time and of CPU,
ratio to the plain loop per second of CPU, records and connections, peak memory of the process (of its largest child
where it has workers). The plain loop (log_loop.py) is the usual `for line in file` with one compiled regex that keeps
the fields that `extract` keeps; it runs on a part of the file when that is larger than SAMPLE. Counts must agree.
With --repeat all ways take turns so many times, and the fastest run of each counts: for a machine that others use too.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import log_loop
import make_log

if TYPE_CHECKING:
    from topodiag.evidence.nccl_log.tables.facts import Facts

SAMPLE = 200 * 10**6
Found = tuple[int, int]
"""Records and connections."""


def loop(path: Path, size: int) -> Found:
    read = log_loop.read(path, size)
    return read.records, sum(count for _, count, _ in read.connections.values())


def one_core(path: Path, size: int) -> Found:
    """The same through `extract`, in pieces as the program hands them out."""
    from topodiag.evidence.intake.log_plan import CHUNK_BYTES  # noqa: PLC0415
    from topodiag.evidence.nccl_log.fast.scan import extract  # noqa: PLC0415
    from topodiag.evidence.nccl_log.input.streams import Reading, pieces, text_of  # noqa: PLC0415

    records = connections = 0
    with path.open("rb") as stream:
        for piece in pieces(text_of(stream, (), Reading()), CHUNK_BYTES, 0, size):
            found = _found(extract(piece.data, 0, piece.base))
            records, connections = records + found[0], connections + found[1]
    return records, connections


def _found(facts: Facts) -> Found:
    return int(facts["shards"]["records"].sum()), int(facts["conn"]["count"].sum())


def ingested(path: Path, workers: int) -> Found:
    from topodiag.fleet.ingest import ingest  # noqa: PLC0415

    return _found(ingest([str(path)], workers=workers).facts)


def work(way: str, path: Path, size: int) -> None:
    """Run one way in this process; print what it found and cost, start and imports aside."""
    if way != "loop":  # whose memory is printed, too
        importlib.import_module("topodiag.fleet.cores").one_thread()  # as the program does
        importlib.import_module("topodiag.fleet.ingest")
    before = time.perf_counter(), _cpu()
    if way == "loop":
        found = loop(path, size)
    elif way == "extract":
        found = one_core(path, size)
    else:
        found = ingested(path, int(way))
    wall, cpu = time.perf_counter() - before[0], _cpu() - before[1]
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    print(json.dumps({"found": found, "wall": wall, "cpu": cpu, "peak": peak}))


def _cpu() -> float:
    """Seconds of this process and of the children that have ended."""
    each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in each)


def tool(argv: list[str]) -> tuple[float, str]:
    """Seconds of a tool, and what it counts; what `cat` writes is not kept."""
    kept = subprocess.DEVNULL if argv[0] == "cat" else subprocess.PIPE
    before = time.perf_counter()
    done = subprocess.run(argv, stdout=kept, text=True, check=False)
    return time.perf_counter() - before, (done.stdout or "").strip()[:20]


def compare(path: Path, size: int, repeat: int) -> None:
    subprocess.run(["cat", str(path)], stdout=subprocess.DEVNULL, check=True)  # warm
    for name, argv in (
        ("cat", ["cat", str(path)]),
        ("grep -c", ["grep", "-c", " via ", str(path)]),
        ("rg -c", ["rg", "-c", " via ", str(path)]),
    ):
        if shutil.which(argv[0]):
            wall, out = tool(argv)
            print(f"{name:24} {size / wall / 1e6:8.0f} MB/s   {out}")
    part = whole_lines(path, min(size, SAMPLE))
    plan = [("loop", part, "plain loop"), ("extract", part, "extract"), ("extract", size, "extract, whole file")]
    plan += [("1", size, "ingest, 1 worker"), ("2", size, "ingest, 2 workers")]
    runs: dict[str, list[dict[str, Any]]] = {name: [] for _, _, name in plan}
    for way, share, name in plan * repeat:
        argv = [sys.executable, __file__, "--way", way, "--path", str(path), "--size", str(share)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ})
        if done.returncode:
            print(f"{name:24} failed: {done.stderr.strip().splitlines()[-1:]}")
            return
        runs[name].append(json.loads(done.stdout))
    rate, walls = 0.0, {}
    for way, share, name in plan:
        wall, cpu, peak = (min(said[what] for said in runs[name]) for what in ("wall", "cpu", "peak"))
        speed = share / cpu / 1e6
        rate = rate or speed
        walls[way] = wall
        records, connections = runs[name][0]["found"]
        print(
            f"{name:24} {share / wall / 1e6:8.1f} MB/s   {speed:7.1f} MB/CPU s   x{speed / rate:5.1f}   "
            f"{records} records, {connections} connections in {share // 10**6} MB   {peak:.0f} MiB"
        )
    print(f"two workers read x{walls['1'] / walls['2']:.2f} as fast as one")


def whole_lines(path: Path, size: int) -> int:
    """The end of the line at this size."""
    with path.open("rb") as stream:
        stream.seek(max(size - 1, 0))
        stream.readline()
        return stream.tell()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=make_log.number_of_bytes, default=10**9)
    parser.add_argument("--label", action="store_true")
    parser.add_argument("--talk", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        work(given.way, given.path, given.size)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder, "job.log")
        make_log.write(path, given.size, label=given.label, talking=given.talk)
        compare(path, path.stat().st_size, max(given.repeat, 1))


if __name__ == "__main__":
    main()
