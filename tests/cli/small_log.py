"""The smallest log that makes a job: ranks of one node that started and completed their communicator."""

HEAD = "node-a:10:{tid} [{dev}] NCCL INFO "


def log(ranks: int = 2, size: int = 2) -> str:
    lines = []
    for rank in range(ranks):
        head = HEAD.format(tid=10 + rank, dev=rank)
        tail = f"rank {rank} nranks {size} cudaDev {rank} nvmlDev {rank} busId {0x1000 * (rank + 1):x} commId 0xabc"
        lines += [
            head + "NCCL version 2.23.4+cuda12.6",
            head + f"ncclCommInitRank comm 0x{rank + 1:x}000 {tail} - Init START",
            head + f"ncclCommInitRank comm 0x{rank + 1:x}000 {tail} - Init COMPLETE",
        ]
    return "\n".join(lines) + "\n"
