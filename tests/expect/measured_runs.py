"""Runs of nccl-tests built by hand: as few words as a test needs."""

from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Timing

GIB = 1 << 30


def run(
    collective: str = "all_reduce",
    ranks: int = 8,
    busbw: float | dict[int, float] = 100.0,
    *,
    gpu: str = "",
    hosts: int = 1,
    nccl: str = "2.28.9",
    env: dict[str, str] | None = None,
) -> BenchRun:
    """A run of one size (8 GiB), or of the sizes of `busbw`; with a device list where `gpu` names the GPUs."""
    sizes = busbw if isinstance(busbw, dict) else {8 * GIB: busbw}
    rows = tuple(
        BenchRow(size, out_of_place=Timing(size / max(gbs, 1e-9) / 1000, gbs, gbs)) for size, gbs in sizes.items()
    )
    number = max(ranks // hosts, 1)
    devices = tuple(BenchDevice(rank, f"n{rank // number}", rank % number, gpu) for rank in range(ranks)) if gpu else ()
    return BenchRun(collective, rows, devices, ranks, nccl=nccl, env=env or {})
