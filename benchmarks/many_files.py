"""Prints what a job of 16,384 ranks in 2,048 files costs: time and peak memory, from the logs to the job.

    python benchmarks/many_files.py [--nodes 2048] [--workers N] [--keep FOLDER]

One file per node with 8 ranks; each rank is in the job's world, a tensor-parallel group (its node) and a
data-parallel group (the same GPU of all nodes), with rings, connections, devices and some operations, as NCCL 2.28
prints them. Target: less than 2 GB at the peak, of this process and each worker.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from topodiag.evidence.nccl_log.rebuild.rebuild import rebuild
from topodiag.fleet.ingest import ingest

GPUS = 8
CHANNELS = 8
TARGET_MIB = 2000


def ring_neighbour(rank: int, size: int, step: int) -> int:
    return (rank + step) % size


def communicator(  # noqa: PLR0917 - what the line says, in its order
    head: str, pointer: int, rank: int, size: int, gpu: int, comm_id: int, parent: str
) -> Iterator[str]:
    """What one member of a communicator prints, from Init START to COMPLETE."""
    whole = size % GPUS == 0
    name = f"comm {pointer:#x} rank {rank} nranks {size} cudaDev {gpu} nvmlDev {gpu} busId {gpu + 1}b000"
    func = "ncclCommSplit" if parent else "ncclCommInitRank"
    yield f"{head}{func} {name}{parent} commId {comm_id:#x} - Init START"
    nodes = size // GPUS if whole else size
    local = GPUS if whole else 1
    seat = rank % local
    seats = f"localRanks {local} localRank {seat}"
    yield f"{head}comm {pointer:#x} rank {rank} nRanks {size} nNodes {nodes} {seats} MNNVL 0"
    after, before = ring_neighbour(rank, size, 1), ring_neighbour(rank, size, -1)
    for channel in range(CHANNELS):
        yield f"{head}Ring {channel:02} : {before} -> {rank} -> {after}"
    trees = " ".join(f"[{channel}] {after}/-1/-1->{rank}->{before}" for channel in range(CHANNELS))
    yield f"{head}Trees {trees}"
    for channel in range(CHANNELS):
        leaves = not whole or (nodes > 1 and seat == GPUS - 1)
        enters = not whole or (nodes > 1 and seat == 0)
        dev = gpu if not whole else seat
        if leaves:
            yield f"{head}Channel {channel:02}/0 : {rank}[{dev}] -> {after}[0] [send] via NET/IB/{channel % 8}/GDRDMA"
        else:
            yield f"{head}Channel {channel:02}/0 : {rank}[{dev}] -> {after}[{dev + 1}] via P2P/CUMEM/read"
        if enters:
            via = f"NET/IB/{channel % 8}/GDRDMA"
            yield f"{head}Channel {channel:02}/0 : {before}[0] -> {rank}[{dev}] [receive] via {via}"
    counts = f"{CHANNELS} coll channels, 0 collnet channels, 0 nvls channels, {CHANNELS} p2p channels"
    yield f"{head}{counts}, 2 p2p channels per peer"
    yield f"{head}{func} {name}{parent} commId {comm_id:#x} - Init COMPLETE"


def node_log(node: int, nodes: int) -> Iterator[str]:
    for gpu in range(GPUS):
        head = f"gpu-{node:04}:{4000 + gpu}:{4000 + gpu} [{gpu}] NCCL INFO "
        rank, at = node * GPUS + gpu, 0x7F0000000000 + gpu * 0x1000000
        yield f"{head}NCCL version 2.28.9+cuda13.0"
        yield f"{head}NCCL_DEBUG set by environment to INFO."
        for nic in range(8):
            path = f"/sys/devices/pci0000:{nic:02x}/0000:{nic:02x}:01.0"
            yield (
                f"{head}NET/IB: [{nic}] mlx5_{nic}:uverbs{nic}:1/IB provider=Mlx5 speed=400000 "
                f"context={at:#x} pciPath={path} ar=1"
            )
        using = " ".join(f"[{nic}]mlx5_{nic}:1/IB" for nic in range(8))
        yield f"{head}NET/IB : Using {using} [RO]; OOB eth0:10.1.{node // 256}.{node % 256}<0>"
        yield f"{head}Using network IB"
        yield from communicator(head, at, rank, nodes * GPUS, gpu, 0xABC123, "")
        split = f" parent {at:#x} splitCount"
        yield from communicator(head, at + 0x10000, gpu, GPUS, gpu, 0x1000 + node, f"{split} 1 color {node} key {gpu}")
        if nodes > 1:
            across = f"{split} 2 color {gpu} key {node}"
            yield from communicator(head, at + 0x20000, node, nodes, gpu, 0x9000 + gpu, across)
        for count in range(16):
            yield (
                f"{head}AllReduce: opCount {count:x} sendbuff 0x7f10 recvbuff 0x7f10 count {1 << 20} datatype 9 op 0 "
                f"root 0 comm {at:#x} [nranks={nodes * GPUS}] stream 0x5500"
            )


def peak_mib(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1024


def cpu_s() -> float:
    """Of this process and of its workers that have ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2048)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--keep", help="write the logs into this folder and leave them there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(given.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for node in range(given.nodes):
            (folder / f"node{node:04}.log").write_text("\n".join(node_log(node, given.nodes)) + "\n")
        size = sum(each.stat().st_size for each in os.scandir(folder)) / 1e6
        print(f"{given.nodes * GPUS} ranks in {given.nodes} files, {size:.0f} MB")
        begun, busy = time.perf_counter(), cpu_s()
        read = ingest([str(folder)], workers=given.workers)
        seen, read_cpu = time.perf_counter(), cpu_s() - busy
        jobs = rebuild(read.facts, read.files)
        done, rebuild_cpu = time.perf_counter(), cpu_s() - busy - read_cpu
    records = sum(each.records for each in read.inputs)
    print(
        f"read     {seen - begun:6.1f} s   {read_cpu:6.1f} CPU s   {records} records, {size / (seen - begun):.0f} MB/s"
    )
    communicators = sum(len(job.communicators) for job in jobs)
    print(
        f"rebuild  {done - seen:6.1f} s   {rebuild_cpu:6.1f} CPU s   {len(jobs)} job(s), {communicators} communicators"
    )
    for who, name in ((resource.RUSAGE_SELF, "this process"), (resource.RUSAGE_CHILDREN, "largest worker")):
        peak = peak_mib(who)
        verdict = "" if peak <= TARGET_MIB else f"   MORE than the {TARGET_MIB} MiB aimed at"
        print(f"peak     {peak:6.0f} MiB {name}{verdict}")


if __name__ == "__main__":
    main()
