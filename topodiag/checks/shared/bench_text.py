"""What the checks of benchmarks have in common: rows that count, words for a run and for sizes."""

from __future__ import annotations

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
