"""What nccl-tests print of a run that takes a latency and a share of a bandwidth."""

# ruff: noqa: E501 - rows as wide as nccl-tests prints them


def table(
    beta: float = 230.0,
    *,
    alpha: float = 20.0,
    ranks: int = 8,
    hosts: int = 1,
    wrong: int = 0,
    gpu: str = "NVIDIA H100 80GB HBM3",
    host: str = "gpu-",
    powers: range = range(10, 34),
) -> str:
    """The table of all_reduce_perf that takes `alpha` us and reaches `beta` GB/s, at sizes of these powers of two."""
    lines = [
        "# nccl-tests version 2.17.8 nccl-headers=22809 nccl-library=22809",
        "# Collective test starting: all_reduce_perf",
        f"# nThread 1 nGpus 1 minBytes {1 << powers[0]} maxBytes {1 << powers[-1]} step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0",
        "#\n# Using devices",
    ]
    for rank in range(ranks):
        number, local = divmod(rank, ranks // hosts)
        lines.append(
            f"#  Rank {rank:2d} Group  0 Pid {100 + rank:6d} on {host}{number} device {local:2d} [0000:{0x18 + local:02x}:00] {gpu}"
        )
    lines.append(
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong"
    )
    for size in (1 << power for power in powers):
        time = alpha + size / beta / 1e3
        block = f"{time:9.2f} {size / time / 1e3:8.2f} {size / time / 1e3 * 2 * (ranks - 1) / ranks:8.2f} {wrong:7d} "
        lines.append(f"{size:12d} {size // 4:12d}     float     sum      -1 {block}{block}")
    lines += [f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}", "# Avg bus bandwidth    : 123.4", "#"]
    return "\n".join(lines) + "\n"
