"""Prints where the time of a job's logs goes: reading them, rebuilding the job, judging it, each with its share.

    python benchmarks/log_job.py [--size 200MB] [--hosts 256] [--workers 2] [--times 3] [--path LOG]

A log of `make_log.py`, eight ranks a host, or what --path names: a log, a folder, or facts that `topodiag logs --save`
kept. CPU seconds are of this process and its workers together. Rebuilding and judging are done several times, and the
quickest counts; the first judging also imports the checks. Target for the log that is made: both together
take less than a quarter of the reading's CPU seconds.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from pathlib import Path

import make_log
from many_files import cpu_s

from topodiag.app.case.collecting import OBJECTS
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.nccl_log.rebuild.rebuild import rebuild
from topodiag.fleet.ingest import ingest

TARGET = 0.25


def measure(path: Path, workers: int, times: int, *, judged: bool) -> None:
    taken: dict[str, list[tuple[float, float]]] = {"read": [], "rebuild": [], "judge": []}

    def note(stage: str, begun: tuple[float, float]) -> None:
        taken[stage].append((time.perf_counter() - begun[0], cpu_s() - begun[1]))

    begun = time.perf_counter(), cpu_s()
    read = ingest([str(path)], workers=workers)
    note("read", begun)
    for _ in range(times):
        begun = time.perf_counter(), cpu_s()
        jobs = rebuild(read.facts, read.files)
        note("rebuild", begun)
        begun = time.perf_counter(), cpu_s()
        run(Subject.JOB, jobs)
        note("judge", begun)
    ranks, rows = sum(len(job.ranks) for job in jobs), sum(len(job.connections) for job in jobs)
    print(f"{len(jobs)} job(s), {ranks:,} ranks, {rows:,} connections")
    best = {stage: (min(wall for wall, _ in each), min(cpu for _, cpu in each)) for stage, each in taken.items()}
    together = sum(cpu for _, cpu in best.values())
    for stage, (wall, cpu) in best.items():
        print(f"{stage:8} {wall:6.2f} s   {cpu:6.2f} CPU s   {100 * cpu / together:3.0f}%")
    job = best["rebuild"][1] + best["judge"][1]
    share = job / best["read"][1]
    verdict = f"   MORE than the {TARGET} aimed at" if judged and share > TARGET else ""
    print(f"from facts to verdict {job:.2f} CPU s, {share:.2f} of the reading{verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=make_log.number_of_bytes, default=200 * 10**6)
    parser.add_argument("--hosts", type=int, default=256)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--path", type=Path, help="read this instead of making a log")
    given = parser.parse_args()
    gc.set_threshold(OBJECTS)  # as the command does
    if given.path:
        measure(given.path, given.workers, given.times, judged=False)  # saved facts take no time to read
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "job.log")
        make_log.write(path, given.size, given.hosts)
        measure(path, given.workers, given.times, judged=True)


if __name__ == "__main__":
    main()
