"""Makes a NCCL log of any size for benchmarks: the same bytes for the same arguments.

    python benchmarks/make_log.py OUT [--size 1GB] [--hosts 256] [--label] [--talk 0]

NCCL 2.28's wording. Eight ranks a host, whose lines are interleaved as one file of a whole job has them. About 87 of
100 lines are channel connections, as in the log of a large job; the rest is what a job prints around them. With
--talk, so many lines of a training's own follow each line of NCCL, as in a folder with all that a job printed.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

RANKS = 8
"""Ranks of a host."""
_CHANNELS = 16
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
_TOGETHER = 512
"""Ranks whose lines are interleaved."""


def rank_lines(rank: int, hosts: int, dice: random.Random, turn: int) -> Iterator[str]:
    """What one rank prints for one communicator, without a label."""
    local, node, ranks = rank % RANKS, rank // RANKS, hosts * RANKS
    pid = 20000 + rank % 997 + local
    head = f"gpu-node-{node:04d}:{pid}:{pid + 400} [{local}] NCCL "
    info = head + "INFO "
    comm = f"0x5{(rank * 7919 + turn * 104729) % (1 << 44):011x}"
    bus = f"{(local * 32 + 27) << 12:x}"
    job = 0x9F3A61C07D2E55B1 + turn
    init = (
        f"ncclCommInitRankConfig comm {comm} rank {rank} nranks {ranks} cudaDev {local} nvmlDev {local} busId {bus} "
        f"commId 0x{job:x}"
    )
    if not turn:
        yield info + "cudaDriverVersion 13000"
        yield info + "NCCL version 2.28.9+cuda13.0"
        yield info + "NCCL_IB_HCA set to mlx5"
        yield (
            info + "NET/IB : Using " + " ".join(f"[{i}]mlx5_{i}:1/IB" for i in range(8)) + " [RO]; OOB eth0:10.0.0.1<0>"
        )
        yield info + "Using network IB"
    yield info + init + " - Init START"
    yield info + "=== System : maxBw 48.0 totalBw 370.8 ==="
    for i in range(2):
        yield info + f"CPU/0-{i} (1/1/3)"
        yield info + f"+ PCI[48.0] - PCI/0-{i + 1}5000 (1000c03015d9{i}000)"
        yield info + f"              + PCI[48.0] - GPU/0-{(i * 4 * 32 + 27) << 12:x} ({node * RANKS + 4 * i})"
    yield info + "=========================================="
    yield info + f"comm {comm} rank {rank} nRanks {ranks} nNodes {hosts} localRanks {RANKS} localRank {local} MNNVL 0"
    for nic in range(8):
        hops = 4 if nic == local else 7
        word, sign = ("Enabled", "<=") if nic == local else ("Disabled", ">")
        yield (
            info
            + f"GPU Direct RDMA {word} for GPU {rank} / HCA {nic} (distance {hops} {sign} 5)"
            + (", read 0 mode Default" if nic == local else "")
        )
    before, after = (rank - 1) % ranks, (rank + 1) % ranks
    yield info + "Trees " + " ".join(f"[{c}] {after}/-1/-1->{rank}->{before}" for c in range(_CHANNELS))
    for channel in range(_CHANNELS):
        yield info + f"Ring {channel:02d} : {before} -> {rank} -> {after}"
    for peer in (after, before, *(dice.randrange(ranks) for _ in range(12))):
        for channel in range(_CHANNELS):
            index = int(peer not in (after, before))
            ends = f"Channel {channel:02d}/{index} : {rank}[{local}] -> {peer}[{peer % RANKS}]"
            if peer // RANKS == node:
                yield info + f"{ends} via P2P/CUMEM/read"
                continue
            nic = (local + channel) % 8
            via = f"NET/IB/{nic}({node * RANKS + nic})/GDRDMA" if nic != local else f"NET/IB/{nic}/GDRDMA"
            yield info + f"{ends} [send] via {via}" + "/Shared" * index
            back = f"Channel {channel:02d}/{index} : {peer}[{peer % RANKS}] -> {rank}[{local}]"
            yield info + f"{back} [receive] via NET/IB/{local}/GDRDMA" + "/Shared" * index
    yield info + "Connected all rings, use ring PXN 0 GDR 1"
    yield info + f"{init} - Init COMPLETE"
    for count in range(12):
        yield info + (
            f"AllReduce: opCount {count:x} sendbuff 0x7f{local}760000000 recvbuff 0x7f{local}560000000 "
            f"count {1 << (10 + count % 5)} datatype 7 op 0 root 0 comm {comm} [nranks={ranks}] stream 0x55a6e76d80b0"
        )
    if dice.random() < 0.02:
        warn = f"{head[:-5]}transport/net_ib.cc:2459 NCCL WARN "
        yield ""
        yield warn + "NET/IB: Got completion from peer 10.0.0.7<4000> with status=12 opcode=0 len=0 vendor err 129"
    if dice.random() < 0.2:
        yield f"step {turn} | loss {dice.random():.4f} | {dice.randrange(400)} TFLOPS"


def talk(dice: random.Random) -> str:
    """What trainings print at a step."""
    step, loss, speed = dice.randrange(500_000), dice.random(), dice.random()
    return (
        f" iteration {step:8d}/  500000 | consumed samples: {step * 1024:12d} | elapsed time per iteration (ms): "
        f"{speed * 9000:.1f} | global batch size:  1024 | lm loss: {loss:.6E} | grad norm: {loss:.3f} |\n",
        f"2026-11-20 12:{step // 60 % 60:02d}:{step % 60:02d},{step % 1000:03d} INFO trainer.py:88 step {step} "
        f"loss {loss:.4f} tokens/s {speed * 1e5:.0f}\n",
        f"step {step} loss {loss:.4f} tokens/s {speed * 1e5:.0f} mfu {speed:.2f}\n",
    )[step % 3]


def lines(hosts: int, label: bool) -> Iterator[str]:
    """The whole log, without an end: communicator after communicator."""
    turn = 0
    while True:
        for first in range(0, hosts * RANKS, _TOGETHER):
            dice = random.Random(turn * 1000003 + first)
            ranks = range(first, min(first + _TOGETHER, hosts * RANKS))
            open_ = [(rank, rank_lines(rank, hosts, dice, turn)) for rank in ranks]
            while open_:
                at = dice.randrange(len(open_))
                rank, printed = open_[at]
                for _ in range(dice.randrange(1, 6)):
                    line = next(printed, None)
                    if line is None:
                        open_.pop(at)
                        break
                    yield f"{rank}: {line}\n" if label else line + "\n"
        turn += 1


def write(path: Path, size: int, hosts: int = 256, *, label: bool = False, talking: int = 0) -> None:
    done = 0
    dice = random.Random(1)
    with path.open("w", encoding="ascii", newline="\n") as stream:
        for line in lines(hosts, label):
            done += stream.write(line)
            for _ in range(talking):
                done += stream.write(talk(dice))
            if done >= size:
                return


def number_of_bytes(text: str) -> int:
    for unit, factor in _UNITS.items():
        if text.upper().endswith(unit):
            return int(float(text[: -len(unit)]) * factor)
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=number_of_bytes, default=10**9)
    parser.add_argument("--hosts", type=int, default=256)
    parser.add_argument("--label", action="store_true", help="put `RANK: ` in front, as srun -l does")
    parser.add_argument("--talk", type=int, default=0, help="lines of a training's own behind each line of NCCL")
    given = parser.parse_args()
    write(given.out, given.size, given.hosts, label=given.label, talking=given.talk)


if __name__ == "__main__":
    main()
