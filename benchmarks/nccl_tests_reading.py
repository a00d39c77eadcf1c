"""Reading nccl-tests output: time per MB and memory as inputs grow fourfold, so that anything but linear shows.

python benchmarks/nccl_tests_reading.py
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

from topodiag.evidence.nccl_tests import read_file

BLOCK = b"   9299.1  115.47  216.50       0"
ROW = b"  1073741824     268435456     float     sum      -1" + BLOCK + BLOCK + b"\n"
HEAD = (
    b"# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 1 iters: 20\n"
    b"#  Rank  0 Group  0 Pid 1 on gpu-a01 device  0 [0000:18:00] NVIDIA H100 80GB HBM3\n"
    b"#       size         count      type   redop    root     time   algbw   busbw  #wrong\n"
)
LOG = b"gpu-a01:4242:4250 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n"
ODD = b"a line of another program, number 17, at 0x7f00\n"

INPUTS: dict[str, Callable[[int], bytes]] = {
    "rows": lambda n: ROW * n,
    "one-row runs": lambda n: (HEAD + ROW) * (n // 8),
    "NCCL's log": lambda n: LOG * n,
    "other lines": lambda n: ODD * n,
    "JSON rows": lambda n: b'{"results":[' + b",".join([b'{"size":8,"out_of_place":{"time":1.0}}'] * n) + b"]}",
    "JSON cut off": lambda n: b'{"results":[' + b'{"size":8,"out_of_place":{"time":1.0}},' * n,
    "one long line": lambda n: b"8 2 float sum -1 " * (n * 4),
}


def measure(data: bytes) -> tuple[float, float]:
    """Seconds, and MB at the peak beyond the input."""
    start = time.perf_counter()
    read_file(data, "x")
    seconds = time.perf_counter() - start
    tracemalloc.start()
    read_file(data, "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak / 1e6


def main() -> None:
    print(f"{'input':16}{'MB':>8}{'ms/MB':>8}{'peak MB':>9}   four times as much: MB, ms/MB, peak MB; time x")
    for name, make in INPUTS.items():
        small, large = make(4_000), make(16_000)
        (first, memory), (second, more) = measure(small), measure(large)
        mb, mbs = len(small) / 1e6, len(large) / 1e6
        print(
            f"{name:16}{mb:8.2f}{1e3 * first / mb:8.1f}{memory:9.1f}   "
            f"{mbs:8.2f}{1e3 * second / mbs:8.1f}{more:9.1f}   x{second / first:.1f}"
        )


if __name__ == "__main__":
    main()
