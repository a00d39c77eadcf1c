"""Prints what comparing a fleet takes, and whether its odd nodes are named and no others.

    python benchmarks/fleet.py [--nodes N] [--odd N] [--workers N] [--dask local] [--keep DIR]

Bundles of DGX H100 with names, serials and counters of their own, 30 of 10,000 with one fault each
(benchmarks/fleet_bundles.py). Targets for 10,000: 10 minutes on two cores, 1.5 GB, 50 ms of CPU a bundle, all odd ones
named and no other; the time grows as the number does. A tenth of the fleet is compared first, for the growth.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "benchmarks"))

from fleet_bundles import write_fleet  # noqa: E402

TARGET_MS, TARGET_MB = 50.0, 1500


def work(folder: str, workers: int | None, dask: str | None) -> None:
    """Compare in this process; print what it took and whom it named."""
    from topodiag.app.compare import compare  # noqa: PLC0415 - what is imported counts too

    began = time.perf_counter()
    result = compare([folder], workers=workers, dask=dask)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    notes = {host for each in result.findings if each.id == "FLT001" for host in each.where.nodes}
    said = {
        "seconds": time.perf_counter() - began,
        "mb": used[0].ru_maxrss / 1000,
        "worker_mb": used[1].ru_maxrss / 1000,
        "nodes": len(result.nodes),
        "excluded": list(result.failed),
        "named": sorted(notes | set(result.failed)),
    }
    print(json.dumps(said))


def measured(folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """The same in a process of its own, and the CPU seconds of it and of its workers, which it waits for at its end."""
    options = [f"--workers={asked.workers}"] if asked.workers else []
    options += [f"--dask={asked.dask}"] if asked.dask else []
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(
        [sys.executable, __file__, "--work", str(folder), *options], capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(run.stderr)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    made: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return made | {"cpu_s": sum(ended[:2]) - sum(began[:2])}


def show(folder: Path, odd: dict[str, str], asked: argparse.Namespace) -> tuple[float, bool]:
    """One fleet: CPU seconds a bundle, and whether all odd nodes are named and no others."""
    said = measured(folder, asked)
    named = set(said["named"])
    missed, false = sorted(set(odd) - named), sorted(named - set(odd))
    each = said["cpu_s"] / said["nodes"]
    print(f"{said['nodes']:,} bundles, {len(odd)} odd")
    print(f"  CPU           {said['cpu_s']:8.1f} s   {1000 * each:.0f} ms a bundle, target {TARGET_MS:.0f}")
    print(f"  elapsed       {said['seconds']:8.1f} s")
    print(f"  peak memory   {said['mb']:8.0f} MB  target {TARGET_MB}; largest worker {said['worker_mb']:.0f} MB")
    print(f"  odd named     {len(odd) - len(missed)} of {len(odd)}" + "".join(f"  {odd[m]}" for m in missed))
    print(f"  excluded      {len(said['excluded'])}, falsely named {len(false)} {' '.join(false[:5])}".rstrip())
    return each, not missed and not false


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--odd", type=int, default=30)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--dask")
    parser.add_argument("--keep", type=Path, help="write the bundles there, or use those that are there")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.work, asked.workers, asked.dask)
        return
    with tempfile.TemporaryDirectory(prefix="topodiag-fleet-") as place:
        top = asked.keep or Path(place)
        made = []
        for nodes in (max(asked.nodes // 10, 3), asked.nodes):
            folder, index = top / f"fleet-{nodes}", top / f"fleet-{nodes}.json"
            if not index.exists():
                index.parent.mkdir(parents=True, exist_ok=True)
                index.write_text(json.dumps(write_fleet(folder, nodes, min(asked.odd, nodes // 20))))
            made.append(show(folder, json.loads(index.read_text()), asked))
    print(f"CPU a bundle at the whole size over that at a tenth: {made[1][0] / made[0][0]:.2f} (linear: 1)")
    raise SystemExit(0 if all(good for _, good in made) else 1)


if __name__ == "__main__":
    main()
