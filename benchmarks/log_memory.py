"""Prints the memory that reading logs takes: the peak of each process, and of all together, on logs that it makes.

    python benchmarks/log_memory.py [--size 1GB] [--size 10GB] [--workers 2] [--job] [--saved] [--path LOG]
        [--folder /tmp]

For each size, a log of `make_log.py` is read into facts by `topodiag.fleet.ingest`, with --job also rebuilt and judged,
as `topodiag logs` does; with --saved the facts are saved too, and the job is rebuilt and judged once more from those
alone, by a process of its own. Each process and its workers are watched from outside: `own` is memory that only this
process has, `mapped` are pages of files, facts on disk above all, which the system takes back when it needs them.
Target: less than 700 MiB for each process whatever the size.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import make_log
import psutil

TARGET_MIB = 700
STEP_S = 0.05


def work(path: str, workers: int, save_to: str | None, *, job: bool) -> None:
    """Read in this process; print what it took and gave."""
    from topodiag.app.case.jobs import LogOptions  # noqa: PLC0415
    from topodiag.app.logs import logs as diagnose_logs  # noqa: PLC0415
    from topodiag.evidence.nccl_log.tables.saved import save  # noqa: PLC0415 - what is imported counts as memory too
    from topodiag.fleet.ingest import ingest  # noqa: PLC0415

    begun = time.perf_counter()
    said: dict[str, float] = {}

    def tell(_read: int, _size: int) -> None:
        said["read_s"] = time.perf_counter() - begun

    if job:
        result = diagnose_logs([path], options=LogOptions(workers=workers, save=save_to), on_progress=tell)
        said["connections"] = sum(len(each.connections) for each in result.jobs)
    else:
        read = ingest([path], workers=workers, on_progress=tell)
        if save_to is not None:
            with Path(save_to).open("wb") as stream:
                save(stream, read.facts, read.files)
        said["rows"] = sum(len(table) for table in read.facts.tables.values())
    said["seconds"] = time.perf_counter() - begun
    said["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(said))


class Watch:
    """Peaks of a process and its children, in MiB."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self.own: dict[int, float] = {}
        self.mapped: dict[int, float] = {}
        self.when: dict[int, float] = {}
        """Seconds after the start at which a process took most."""
        self.together = 0.0
        self._begun = time.perf_counter()

    def look(self) -> None:
        together = 0.0
        try:
            family = [self._root, *self._root.children(recursive=True)]
        except psutil.Error:
            return
        for each in family:
            try:
                seen = each.memory_info()
            except psutil.Error:
                continue
            own, mapped = (seen.rss - seen.shared) / 2**20, seen.shared / 2**20
            if own > self.own.get(each.pid, 0.0):
                self.own[each.pid], self.when[each.pid] = own, time.perf_counter() - self._begun
            self.mapped[each.pid] = max(self.mapped.get(each.pid, 0.0), mapped)
            together += own
        self.together = max(self.together, together)


def watch(path: Path, workers: int, save_to: Path | None = None, *, job: bool) -> None:
    argv = [sys.executable, __file__, "--inner", str(path), "--workers", str(workers), *(["--job"] if job else [])]
    argv += ["--save", str(save_to)] if save_to is not None else []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={**os.environ}) as child:
        seen = Watch(child.pid)
        while child.poll() is None:
            seen.look()
            time.sleep(STEP_S)
        out = child.stdout.read() if child.stdout is not None else ""
    if child.returncode:
        raise SystemExit(f"failed with {child.returncode}")
    said = json.loads(out)
    size = path.stat().st_size
    what = ", ".join(f"{count:,.0f} {name}" for name, count in said.items() if name in {"rows", "connections"})
    read = f" (read after {said['read_s']:.0f} s)" if "read_s" in said else ""
    print(f"{amount(size)} in {said['seconds']:.0f} s{read}, {size / said['seconds'] / 1e6:.0f} MB/s: {what}")
    for number, (pid, own) in enumerate(sorted(seen.own.items(), key=lambda item: item[0] != child.pid)):
        name = "this process" if not number else f"child {number}"
        mapped = seen.mapped[pid]
        more = f"   peak of both at once {said['peak_mib']:5.0f} MiB" if not number else ""
        verdict = "" if own <= TARGET_MIB else f"   MORE than the {TARGET_MIB} MiB aimed at"
        print(f"  {name:14} own {own:6.0f} MiB after {seen.when[pid]:4.0f} s   mapped {mapped:6.0f} MiB{more}{verdict}")
    print(f"  {'all together':14} own {seen.together:6.0f} MiB")


def amount(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 10**9 else f"{size / 1e6:.0f} MB"


def measure(path: Path, workers: int, folder: Path | None, *, job: bool, saved: bool) -> None:
    if not saved:
        watch(path, workers, job=job)
        return
    with tempfile.TemporaryDirectory(dir=folder) as place:
        facts = Path(place, "job.facts")
        watch(path, workers, facts, job=job)
        print("from its saved facts:")
        watch(facts, workers, job=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=make_log.number_of_bytes, action="append")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--job", action="store_true", help="rebuild and judge the job too")
    parser.add_argument("--saved", action="store_true", help="save the facts, and rebuild and judge the job from them")
    parser.add_argument("--path", type=Path, help="read this log instead of making one")
    parser.add_argument("--folder", type=Path, help="where logs are made")
    parser.add_argument("--inner", help=argparse.SUPPRESS)
    parser.add_argument("--save", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inner:
        work(given.inner, given.workers, given.save, job=given.job)
    elif given.path:
        measure(given.path, given.workers, given.folder, job=given.job, saved=given.saved)
    else:
        for size in given.size or [10**9]:
            with tempfile.TemporaryDirectory(dir=given.folder) as folder:
                path = Path(folder, "job.log")
                make_log.write(path, size)
                measure(path, given.workers, given.folder, job=given.job, saved=given.saved)


if __name__ == "__main__":
    main()
