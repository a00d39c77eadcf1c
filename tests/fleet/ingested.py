"""Logs of a small job, and how what was read of them is compared."""

import os
from pathlib import Path

from tests.evidence.nccl_log.scan_compare import same_facts
from topodiag.evidence.nccl_log.input.streams import Span
from topodiag.fleet import work
from topodiag.fleet.ingest import Ingested

NODES, GPUS = 2, 2


def rank_log(rank: int) -> bytes:
    """A small log of one rank of four: init, channels, a ring, operations, a warning, a line that nobody knows."""
    host, pid, dev = f"node{rank // GPUS}", 100 + rank, rank % GPUS
    head = f"{host}:{pid}:{pid + 1} [{dev}] NCCL INFO "
    comm = f"comm 0x55d0{rank}000 rank {rank} nranks 4 cudaDev {dev} nvmlDev {dev} busId {dev + 1}b000 commId 0xabc123"
    lines = [
        f"{head}NCCL version 2.28.9+cuda13.0",
        f"{head}ncclCommInitRank {comm} - Init START",
        f"{head}NCCL_DEBUG set by environment to INFO.",
        f"{head}comm 0x55d0{rank}000 rank {rank} nRanks 4 nNodes 2 localRanks 2 localRank {dev} MNNVL 0",
    ]
    for channel in range(4):
        after, before = (rank + 1) % 4, (rank - 1) % 4
        via = "NET/IB/0/GDRDMA" if after // GPUS != rank // GPUS else "P2P/CUMEM/read"
        lines.append(f"{head}Channel {channel:02}/0 : {rank}[{dev}] -> {after}[{after % GPUS}] [send] via {via}")
        lines.append(f"{head}Ring {channel:02} : {before} -> {rank} -> {after}")
    lines += [
        f"{head}ncclCommInitRank {comm} - Init COMPLETE",
        "epoch 1 | loss 2.31 \r epoch 1 | loss 2.29",
        f"{head}a sentence that no version of NCCL prints {rank}",
        f"{head[:-5]}transport/net_ib.cc:2459 NCCL WARN NET/IB: Got async event : port error {rank}",
    ]
    for count in range(20):
        lines.append(
            f"{head}AllReduce: opCount {count:x} sendbuff 0x7f00 recvbuff 0x7f00 count {1024 << count % 3} datatype 7 "
            f"op 0 root 0 comm 0x55d0{rank}000 [nranks=4] stream 0x1"
        )
    return "\n".join(lines).encode() + b"\n"


def same(left: Ingested, right: Ingested) -> bool:
    assert same_facts(left.facts, right.facts)
    assert left.files == right.files
    assert left.inputs == right.inputs
    assert left.unread == right.unread
    assert left.notes == right.notes
    return True


def ingest_part(files: list[str], number: int) -> work.Part:
    coding = {".gz": ("gzip",), ".zst": ("zstd",)}.get(Path(files[number]).suffix, ())
    return work.run_task([Span(number, files[number], 0, os.path.getsize(files[number]), coding)], 1000)
