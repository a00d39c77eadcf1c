"""What the checks of benchmarks have in common: rows that count, words for a run and for sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from topodiag.model.bench import Benchmark, BenchRun

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size_text(size: int) -> str:
    """`64 MiB`; sizes that are no round number of a unit with one digit, `383.9 MiB`."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size // unit} {name}" if size % unit == 0 else f"{size / unit:.1f} {name}"
    return f"{size} B"


def title(run: BenchRun) -> str:
    """`all_reduce on 16 ranks of 2 nodes`."""
    ranks = f" on {run.nranks} ranks" if run.nranks else ""
    hosts = f" of {len(run.hosts)} nodes" if len(run.hosts) > 1 else ""
    return f"{run.collective or 'a collective'}{ranks}{hosts}"


def place(benchmark: Benchmark) -> str:
    """Which run it is, for a reader of several."""
    run = benchmark.run
    return run.placement or " ".join(part for part in (run.source, run.collective) if part)


def measured(run: BenchRun) -> list[tuple[int, float]]:
    """(size, GB/s) in ascending order of size; of a size that comes several times the best. Rows that were cut stay
    out."""
    best: dict[int, float] = {}
    for row in run.rows:
        gbs = row.busbw_gbs
        if gbs is not None and not row.cut and row.size > 0:
            best[row.size] = max(gbs, best.get(row.size, 0.0))
    return sorted(best.items())


MOST_LISTED = 4
"""Hosts up to which a command lists them; more stand in the user's host file."""


def as_option(size: int) -> str:
    """`11.7G` of 11.7 GiB, as nccl-tests reads a size (`parsesize` of common.cu)."""
    return size_text(size).rstrip("iB").replace(" ", "")


def program_of(collective: str) -> str:
    """`reduce_scatter_perf` of NCCL's `ReduceScatter`."""
    return "".join(f"_{sign}" if sign.isupper() else sign for sign in collective).lower().lstrip("_") + "_perf"


def launched(program: str, ranks: Counter[str], per: int = 1) -> str:
    """`mpirun -np 16 -H n0:8,n1:8 all_gather_perf`, by host the number of its ranks, `per` of them in a process; one
    process needs no launcher."""
    hosts = [f"{host}:{max(count // per, 1)}" for host, count in ranks.items() if host]
    listed = f"-H {','.join(hosts)} " if 1 < len(hosts) <= MOST_LISTED else ""
    return f"mpirun -np {count} {listed}{program}" if (count := ranks.total() // per) > 1 else program


def same_run(run: BenchRun, options: str = "", sizes: Collection[int] = ()) -> list[tuple[str, str]]:
    """What stands for `all_reduce_perf`, `-g 8` and the `options` of sizes in the commands of a page, so that they
    measure this run once more: its collective, ranks, hosts, GPUs of a process and sizes, as far as they are known."""
    pairs = [(options, f"-b {as_option(min(sizes))} -e {as_option(max(sizes))}")] if sizes else []
    if run.program != "nccl-tests" or not run.collective:
        return pairs
    program = f"{run.collective}_perf"
    if run.nranks is None:
        return [*pairs, ("all_reduce_perf", program)]
    texts = [run.parameters.get(name, "") for name in ("nThread", "nGpus")]
    threads, gpus = (int(text) if text.isdecimal() else 1 for text in texts)
    hosts = [device.host for device in run.devices]
    ranks = Counter(hosts) if len(hosts) == run.nranks else Counter({"": run.nranks})
    own = f"-g {gpus}" if threads == 1 else f"-t {threads} -g {gpus}"
    return [*pairs, ("-g 8", own), ("all_reduce_perf", launched(program, ranks, max(threads * gpus, 1)))]
