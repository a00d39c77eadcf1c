"""Prints what placing large jobs costs: time and memory of price, audit, solve and look, and the gap to the bound.

    python benchmarks/placement.py [--gpus 1024 16384 100000] [--holes 0 0.05] [--share 0.95]

Nodes of 8 GPUs, 16 under a leaf, a spine twice oversubscribed, 8 rails; of the GPUs the share `holes` is broken at
random, and the job takes `share` of the others with tp 8 and pp 8. Each size runs in a process of its own, whose peak
memory is printed with what the interpreter and numpy take alone. Growth is time over GPUs, as a ratio to the row above:
1 is linear. `look` draws the layout, before and after side by side, on the terminal (`lines`) and as SVG (`svg KB`);
`emit` writes the map as JSON, reads it and writes it for Slurm.

    python benchmarks/placement.py --kubernetes 12500

writes what `kubectl get nodes -o json` prints of so many nodes to a temporary file, and compares reading it with
Python's own reader of JSON: time, and peak memory over the size of the file.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from topodiag.model.cluster import Assignment, Cluster
    from topodiag.placement.groups import Talk

T = TypeVar("T")


def work(gpus: int, holes: float, share: float) -> None:
    """Run one size in this process; print what it took as JSON."""
    import numpy as np  # noqa: PLC0415 - counted with the memory

    from topodiag.model.cluster import Cluster, Demand, Level  # noqa: PLC0415
    from topodiag.placement.audit import audit  # noqa: PLC0415
    from topodiag.placement.groups import Talk  # noqa: PLC0415
    from topodiag.placement.price import price_placement  # noqa: PLC0415
    from topodiag.placement.seats import by_rule  # noqa: PLC0415
    from topodiag.placement.solve import solve  # noqa: PLC0415

    alone = _peak()
    nodes = gpus // 8
    random = np.random.default_rng(0)
    numbers = np.arange(nodes)
    machines = Cluster(
        tuple(f"node{n:06d}" for n in range(nodes)),
        random.random((nodes, 8)) >= holes,
        numbers,
        (Level("leaf", numbers // 16, 5.0, 45.0), Level("spine", np.zeros(nodes, np.int64), 7.0, 22.5)),
        1.0,
        400.0,
        8,
    )
    world = int(machines.free * share) // 64 * 64
    ranks = np.arange(world).reshape(8, -1, 8)  # pp, dp, tp
    demands = (
        Demand("tp", ranks.reshape(-1, 8), "all_reduce", 64e6, calls=160, keep_together=True),
        Demand("pp", np.moveaxis(ranks, 0, 2).reshape(-1, 8), "send_recv", 32e6, calls=16),
        Demand("dp", np.moveaxis(ranks, 1, 2).reshape(-1, world // 64), "all_reduce", 1e9, exposed=0.5),
    )
    block = by_rule(machines, "block", world)
    price_s, before = _timed(lambda: price_placement(machines, demands, block))
    solve_s, made = _timed(lambda: solve(machines, demands, world))
    audit_s, _ = _timed(lambda: audit(machines, Talk(world, demands), block))
    emit_s, _ = _timed(lambda: emit(machines, Talk(world, demands), made.assignment))
    look_s, (lines, svg) = _timed(lambda: look(machines, Talk(world, demands), block, made.assignment))
    print(
        json.dumps(
            {
                "look_s": look_s,
                "emit_s": emit_s,
                "lines": lines,
                "svg_kb": svg / 1e3,
                "gpus": gpus,
                "holes": holes,
                "ranks": world,
                "price_s": price_s,
                "audit_s": audit_s,
                "solve_s": solve_s,
                "alone_mb": alone,
                "peak_mb": _peak(),
                "block_ms": before.step_us / 1e3,
                "step_ms": made.cost.step_us / 1e3,
                "bound_ms": made.bound_us / 1e3,
                "gap": made.gap,
                "split": sum(split.groups for split in made.splits),
            }
        )
    )


def look(cluster: Cluster, talk: Talk, before: Assignment, after: Assignment) -> tuple[int, int]:
    """Lines of the terminal and bytes of the SVG."""
    from topodiag.draw.layouts import look_svg  # noqa: PLC0415
    from topodiag.placement.groups import ids_by_rank  # noqa: PLC0415 - counted with the memory
    from topodiag.placement.view import Look, view_of  # noqa: PLC0415
    from topodiag.report.interface import Style  # noqa: PLC0415
    from topodiag.report.place.look import draw_look  # noqa: PLC0415
    from topodiag.report.text import Page  # noqa: PLC0415

    ids = ids_by_rank(talk)["tp"]
    views = [
        view_of(cluster, each, ids, title, together=True) for each, title in ((before, "before"), (after, "after"))
    ]
    page, seen = Page(Style(width=120)), Look(cluster, "tp", 8, tuple(views))
    draw_look(page, seen)
    return len(page.lines), len(look_svg(seen))


def emit(cluster: Cluster, talk: Talk, assignment: Assignment) -> int:
    """The map as JSON, read back and written for Slurm; characters of that file."""
    from topodiag.emit.place_formats import write  # noqa: PLC0415 - counted with the memory
    from topodiag.emit.place_map import to_json  # noqa: PLC0415
    from topodiag.evidence.interface import Blob  # noqa: PLC0415
    from topodiag.evidence.layout.rank_files import read_place_map  # noqa: PLC0415
    from topodiag.model.cluster import map_of  # noqa: PLC0415
    from topodiag.placement.groups import ids_by_rank  # noqa: PLC0415

    text = to_json(map_of(cluster, assignment, ids_by_rank(talk)))
    return len(write(read_place_map(Blob("map", text.encode())), "slurm-hostfile").text)


def kubernetes(nodes: int) -> None:
    """Both readers of one file, each in a process of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        _write_nodes(file, nodes)
        file.flush()
        size = Path(file.name).stat().st_size
        rows = {}
        for reader in ("topodiag", "json"):
            argv = [sys.executable, __file__, "--read", reader, file.name]
            rows[reader] = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    print(f"{nodes} nodes, {size / 1e6:.0f} MB")
    for reader, row in rows.items():
        print(f"{reader:>8} {row['s']:6.2f} s, peak memory {row['mb'] * 1e6 / size:.2f} times the file")
    print(f"ratio of times {rows['json']['s'] / rows['topodiag']['s']:.1f}")


def read(reader: str, path: str) -> None:
    """Read one file in this process; print what it took as JSON."""
    from topodiag.evidence.cluster.files import read_cluster  # noqa: PLC0415 - counted with the memory
    from topodiag.evidence.intake.one_file import open_blob  # noqa: PLC0415

    alone = _peak()
    start = time.process_time()
    blob = open_blob(path)
    if reader == "json":
        json.loads(blob.data)
    else:
        read_cluster(blob)
    print(json.dumps({"s": time.process_time() - start, "mb": _peak() - alone}))


def _write_nodes(file: IO[str], nodes: int) -> None:
    """Nodes as EKS has them: a hundred labels of feature discovery, fifty images."""
    layer = "topology.k8s.aws/network-node-layer-"
    features = {f"feature.node.kubernetes.io/cpu-cpuid.F{number}": "true" for number in range(80)}
    images = [
        {"names": [f"registry.example/team/image-{n}@sha256:{n:064x}", f"registry.example/team/image-{n}:1.{n}"],
         "sizeBytes": 123_456_789 + n} for n in range(50)
    ]  # fmt: skip
    file.write('{"apiVersion": "v1", "kind": "List", "items": [')
    for number in range(nodes):
        layers = {f"{layer}3": f"nn-{number // 16}", f"{layer}2": f"nm-{number // 256}", f"{layer}1": "no-1"}
        entry = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"gpu-{number:05d}", "labels": layers | features},
            "status": {
                "allocatable": {"cpu": "190", "nvidia.com/gpu": "8"},
                "conditions": [{"type": "Ready", "status": "True", "message": "kubelet is posting ready status"}],
                "images": images,
            },
        }
        file.write(("," if number else "") + json.dumps(entry, indent=4))
    file.write("]}")


def _timed(call: Callable[[], T]) -> tuple[float, T]:
    start = time.process_time()
    made = call()
    return time.process_time() - start, made


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, nargs="+", default=[1024, 16_384, 100_000])
    parser.add_argument("--holes", type=float, nargs="+", default=[0.0, 0.05])
    parser.add_argument("--share", type=float, default=0.95)
    parser.add_argument("--work", nargs=3, metavar=("GPUS", "HOLES", "SHARE"), help=argparse.SUPPRESS)
    parser.add_argument("--kubernetes", type=int, metavar="NODES", help="read kubectl's JSON of so many nodes")
    parser.add_argument("--read", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.read:
        read(*asked.read)
        return
    if asked.kubernetes:
        kubernetes(asked.kubernetes)
        return
    if asked.work:
        work(int(asked.work[0]), float(asked.work[1]), float(asked.work[2]))
        return
    print("seconds are of CPU; MB are of the whole process\n")
    print(
        f"{'GPUs':>7} {'holes':>5} {'ranks':>7} {'price s':>8} {'audit s':>8} {'solve s':>8} {'growth':>6} {'MB':>5}"
        f" {'emit s':>6} {'look s':>6} {'lines':>5} {'svg KB':>6}"
        f" {'block ms':>9} {'step ms':>8} {'bound ms':>8} {'gap':>7} {'split':>6}"
    )
    for holes in asked.holes:
        _rows(asked.gpus, holes, asked.share)


def _rows(sizes: Sequence[int], holes: float, share: float) -> None:
    last: dict[str, float] = {}
    for gpus in sizes:
        argv = [sys.executable, __file__, "--work", str(gpus), str(holes), str(share)]
        row = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
        growth = row["solve_s"] / last["solve_s"] / (gpus / last["gpus"]) if last else float("nan")
        print(
            f"{gpus:>7} {holes:>5.0%} {row['ranks']:>7} {row['price_s']:>8.2f} {row['audit_s']:>8.2f}"
            f" {row['solve_s']:>8.2f} {growth:>6.2f} {row['peak_mb']:>5.0f} {row['emit_s']:>6.2f} {row['look_s']:>6.2f}"
            f" {row['lines']:>5} {row['svg_kb']:>6.0f} {row['block_ms']:>9.1f}"
            f" {row['step_ms']:>8.1f} {row['bound_ms']:>8.1f} {row['gap']:>7.1%} {row['split']:>6}",
            flush=True,
        )
        last = row


if __name__ == "__main__":
    main()
