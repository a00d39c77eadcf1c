"""Prints what a diagnosis takes: CPU seconds and peak memory, for a job and for a cluster.

    python benchmarks/diagnose.py [--job] [--cluster] [--nodes N]

`--job`: 512 ranks, 64 bundles and 10 tables of nccl-tests, target 15 CPU s. `--cluster`: 16,384 ranks and 2,048
bundles, target 2 GB. Neither: both. Each runs in a process of its own. The bundles are those of a healthy DGX H100 with
names, GPUs and adapters of their own for each node, some of them with a fault; the log is that of `make_log.py`.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "benchmarks"))

import make_log  # noqa: E402

from fixtures.generate import bundle  # noqa: E402
from fixtures.generate.incidents.jobs import bench  # noqa: E402
from fixtures.generate.machine import Machine  # noqa: E402
from fixtures.generate.machines.dgx_h100 import dgx_h100  # noqa: E402
from fixtures.generate.parts import digest  # noqa: E402

JOB, CLUSTER = 64, 2048
"""Nodes of the two cases."""
TABLES = 10
TARGET_CPU_S, TARGET_MB = 15.0, 2000
_CHANNELS = {JOB: 16, CLUSTER: 1}
"""Channels whose connections the log shows: a whole log of the cluster would have a gigabyte."""


def name_of(number: int) -> str:
    """As make_log.py calls its hosts."""
    return f"gpu-node-{number:04d}"


def write(folder: Path, nodes: int, tables: int) -> None:
    """The evidence of a case."""
    (folder / "bundles").mkdir(parents=True)
    plain = dgx_h100("gpu-node-XXXX")
    texts = bundle.files(plain)
    for number in range(nodes):
        own = _faulty(number) if number % (nodes // 5) == 3 else _renamed(texts, plain, number)
        (folder / "bundles" / f"{name_of(number)}.tar.gz").write_bytes(_packed(own))
    _write_log(folder / "job.log", nodes, _CHANNELS.get(nodes, 2))
    for number in range(tables):
        pair = [dgx_h100(name_of(2 * number + at)) for at in (0, 1)]
        (folder / f"all_reduce-{number}.txt").write_text(bench(pair, 468.0 - number))


def _write_log(path: Path, nodes: int, channels: int) -> None:
    """One communicator of all ranks, eight a node, each rank's lines together."""
    dice = random.Random(5)
    with path.open("w", encoding="ascii") as stream:
        for rank in range(nodes * make_log.RANKS):
            for line in make_log.rank_lines(rank, nodes, dice, 0):
                at = line.find(" Channel ")
                if (at < 0 or int(line[at + 9 : at + 11]) < channels) and "NCCL WARN" not in line:
                    stream.write(line + "\n")


def _faulty(number: int) -> dict[str, str]:
    """A node with one port at half its rate."""
    machine = dgx_h100(name_of(number))
    nic = machine.nic("mlx5_6")
    nic.rate, nic.speed_name = 200, "HDR"
    return bundle.files(machine)


def _renamed(texts: dict[str, str], plain: Machine, number: int) -> dict[str, str]:
    """The same node under another name, with GPUs and adapters of its own."""
    pairs = [(plain.host, name_of(number))]
    for gpu in plain.gpus:
        pairs.append((gpu.uuid, gpu.uuid[:-12] + digest(number, gpu.index)[:12]))
    for nic in plain.nics:
        new = nic.guid[:10] + digest(number, nic.rdma)[:4] + nic.guid[14:]
        pairs += [(nic.guid, new), (nic.guid.replace(":", ""), new.replace(":", ""))]
    made = {}
    for name, text in texts.items():
        for old, new in pairs:
            text = text.replace(old, new)
        made[name] = text
    return made


def _packed(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(packed.getvalue(), 1)


def work(folder: str) -> None:
    """Diagnose in this process; print what it took and what came of it."""
    import topodiag  # noqa: PLC0415 - what is imported counts too

    began = time.perf_counter()
    result = topodiag.diagnose(folder)
    said = {
        "cpu_s": sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)),
        "seconds": time.perf_counter() - began,
        "mb": max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1000,
        "nodes": len(result.nodes),
        "ranks": sum(len(job.ranks) for job in result.jobs),
        "findings": [f"{each.id} {len(each.where.nodes)}" for each in result.findings[:4]],
    }
    print(json.dumps(said))


def measure(what: str, nodes: int, tables: int) -> None:
    with tempfile.TemporaryDirectory(prefix="topodiag-diagnose-") as place:
        write(Path(place, "case"), nodes, tables)
        run = subprocess.run(
            [sys.executable, __file__, "--work", str(Path(place, "case"))], capture_output=True, text=True, check=False
        )
    if run.returncode:
        print(f"{what}: {run.stderr}")
        return
    said = json.loads(run.stdout)
    print(f"{what}: {said['ranks']:,} ranks, {said['nodes']:,} bundles, {tables} tables")
    print(f"  CPU           {said['cpu_s']:8.1f} s" + (f"   target {TARGET_CPU_S:.0f}" if nodes == JOB else ""))
    print(f"  elapsed       {said['seconds']:8.1f} s")
    print(f"  peak memory   {said['mb']:8.0f} MB" + (f"  target {TARGET_MB}" if nodes == CLUSTER else ""))
    print(f"  findings      {', '.join(said['findings']) or '-'}")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--job", action="store_true")
    asked.add_argument("--cluster", action="store_true")
    asked.add_argument("--nodes", type=int, help="another number of nodes, without tables")
    asked.add_argument("--work", help=argparse.SUPPRESS)
    chosen = asked.parse_args()
    if chosen.work:
        work(chosen.work)
        return 0
    both = not (chosen.job or chosen.cluster or chosen.nodes)
    if chosen.nodes:
        measure(f"{chosen.nodes} nodes", chosen.nodes, 0)
    if chosen.job or both:
        measure("a job", JOB, TABLES)
    if chosen.cluster or both:
        measure("a cluster", CLUSTER, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
