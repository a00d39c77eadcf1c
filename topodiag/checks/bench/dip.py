"""A dip in a sweep: a size that is slower than smaller ones."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import BenchCheck
from topodiag.checks.shared.bench_text import measured, place, size_text, title
from topodiag.lazy import dataclass
from topodiag.model.bench import Benchmark, BenchRow, Expectation
from topodiag.model.finding import Cost, Outcome, Severity
from topodiag.words.units import in_gbs, spell_gbs

DEEP = 0.75
"""Share of a smaller size's bandwidth below which a size dips. Runs repeat to a tenth."""

LEAST_BYTES = 64 << 10
"""Below, times are latency and its jitter."""

FEWEST, ENOUGH = 3, 5
"""Sizes from which a fall to less than half shows, and from which a fall to less than three quarters does."""

HALF = 0.5
UNSTEADY = 3.0
"""Times as fast one block is as the other at one size, from which the run itself varied: no algorithm does that."""

BROKEN = 0.1
"""Share of a smaller size's bandwidth below which a size is broken, not slow."""

BACK = 0.9
"""Share of the smaller size's bandwidth from which a larger size is back."""

LEAST_GBS = 0.1


@dataclass(frozen=True, slots=True)
class Dip:
    """From `peak` GB/s at size `before` to `low` GB/s at `size`. `after` is the size that is back, or the last one if
    that is on its way back, with its GB/s; None for a cliff."""

    before: int
    peak: float
    size: int
    low: float
    after: tuple[int, float] | None


class SweepDips(BenchCheck, id="BEN003"):
    """BEN003: bandwidth falls with the size inside a sweep

    What it finds
        A size of 64 KiB or more whose bus bandwidth is less than three quarters of a smaller size's, in both blocks
        (out of place and in place) where both were measured: a dip when larger sizes recover, a cliff when they do
        not, nor rise to half and more. Where NCCL's model changes algorithm or protocol between the two sizes, the
        switch is named, but where the two blocks of one size differ threefold: then the run itself is unsteady.

    Why it matters
        A dip at a switch means that NCCL's tuning changes too early or too late for this machine: gradient buckets of
        that size lose a quarter and more, and a setting or a tuner plugin wins it back. A size at less than a tenth is
        an error. A cliff shows a limit that only
        bulk meets: buffers, host memory, PCIe ordering, a throttled or lossy network.

    Evidence it reads
        The rows of the table; from the expectation, the sizes at which NCCL changes algorithm and protocol.

    When it stays silent
        Fewer than three sizes: unknown; with three or four only a fall to less than half counts. A size that is slow in
        one block only, or once among repetitions: noise. Sizes below 64 KiB. Falls that the machine's own expectation
        shows as well.

    How to confirm
        all_reduce_perf -b LOW -e HIGH -f 1.2 -n 100      repeat around the size of the dip
        NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING all_reduce_perf -b LOW -e HIGH -f 1.2    algorithm and protocol by size
        NCCL_PROTO=^LL128 all_reduce_perf -b LOW -e HIGH -f 1.2
        NCCL_ALGO=Ring all_reduce_perf -b LOW -e HIGH -f 1.2

    How to fix
        At a switch: a tuner plugin (ncclTuner) or its configuration for the size range; NCCL_ALGO or NCCL_PROTO by
        hand cost other sizes. At a cliff: retransmissions (NIC003), PFC, PCIe ordering (PCI004), throttled clocks.

    References
        NCCL src/graph/tuning.cc (ncclTopoGetAlgoTime) v2.30; ext-tuner/README.md.
    """

    def observe(self, benchmark: Benchmark, others: Sequence[Benchmark]) -> Outcome:
        run = benchmark.run
        sizes = [pair for pair in measured(run) if pair[0] >= LEAST_BYTES]
        if run.nranks == 1:
            return self.not_applicable(benchmark, "one rank: nothing was communicated")
        if len(sizes) < FEWEST:
            return self.unknown(benchmark, f"{len(sizes)} sizes of 64 KiB or more are too few for a dip to show")
        deep = DEEP if len(sizes) >= ENOUGH else HALF
        dip = _deepest(sizes, benchmark.expected, deep)
        if dip is None or not _in_both(run.rows, dip, deep):
            if deep < DEEP:
                return self.unknown(benchmark, f"{len(sizes)} sizes are too few for a dip of less than half to show")
            return self.clean(benchmark, "bandwidth grows or stays with the size")
        varies = _varies(run.rows)
        switch = "" if varies else _switch(benchmark.expected, dip)
        share = 1 - dip.low / dip.peak
        low, high = size_text(dip.before), size_text(dip.after[0] if dip.after else dip.size)
        why = f", where NCCL may go over to {switch}" if switch else varies
        finding = self.finding(
            self.where(benchmark.run.hosts),
            "dip",
            f"{title(run)} falls from {in_gbs(dip.peak)} at {size_text(dip.before)} to {spell_gbs(dip.low)} at "
            f"{size_text(dip.size)}{why}, and {_end(dip)}",
            severity=_severity(dip),
            observed=f"{in_gbs(dip.low)} at {size_text(dip.size)} ({place(benchmark)})",
            expected=f"at least {in_gbs(dip.peak * DEEP)}: {size_text(dip.before)} has {spell_gbs(dip.peak)}",
            fix=self._steps(dip, switch, low, high),
            confirm=[("LOW", _as_option(low)), ("HIGH", _as_option(high))],
            cost=Cost(dip.peak - dip.low, share, f"at sizes around {size_text(dip.size)}"),
            evidence=tuple(row.origin for row in run.rows if row.size == dip.size) or (run.origin,),
        )
        return self.any_of(benchmark, [finding])

    def _steps(self, dip: Dip, switch: str, low: str, high: str) -> tuple[str, ...]:
        algorithm, _, protocol = switch.partition("/")
        cliff, other = "a cliff" if dip.after is None else "", "another protocol" if protocol else ""
        return self.steps("repeat there", cliff, other, low=low, high=high, algorithm=algorithm, protocol=protocol)


def _as_option(size: str) -> str:
    """`11.7G` of `11.7 GiB`, as nccl-tests reads a size (`parsesize` of common.cu)."""
    return size.removesuffix("iB").replace(" ", "")


def _end(dip: Dip) -> str:
    if dip.after is None:
        return "does not recover"
    size, gbs = dip.after
    words = "is back" if gbs >= dip.peak * BACK else f"rises to {spell_gbs(gbs)}"
    return f"{words} at {size_text(size)}"


def _varies(rows: Sequence[BenchRow]) -> str:
    """Where the two blocks of one size lie far apart; "" where they do not."""
    pairs = ((row.size, row.out_of_place.busbw_gbs, row.in_place.busbw_gbs) for row in rows if row.size >= LEAST_BYTES)
    ratios = ((max(a, b) / min(a, b), min(a, b), max(a, b), size) for size, a, b in pairs if a and b)
    times, low, high, size = max(ratios, default=(1.0, 0.0, 0.0, 0))
    return f" (unsteady: {spell_gbs(low)} and {in_gbs(high)} at {size_text(size)})" if times >= UNSTEADY else ""


def _severity(dip: Dip) -> Severity:
    if dip.low < dip.peak * BROKEN:
        return Severity.ERROR
    return Severity.WARNING if dip.after is None or dip.low < dip.peak * HALF else Severity.INFO


def _deepest(sizes: Sequence[tuple[int, float]], expected: Expectation | None, deep: float) -> Dip | None:
    """The size that falls shortest of the best size below it, beyond what the expectation itself falls."""
    dip: Dip | None = None
    before, peak = sizes[0]
    for at, (size, gbs) in enumerate(sizes[1:], 1):
        if gbs >= peak:
            before, peak = size, gbs
            continue
        if peak < LEAST_GBS or gbs >= peak * deep * _allowed(expected, before, size):
            continue
        if dip is None or gbs / peak < dip.low / dip.peak:
            after = next((pair for pair in sizes[at + 1 :] if pair[1] >= peak * BACK), None)
            if after is None and sizes[-1][1] >= max(gbs / DEEP, peak * HALF):
                after = sizes[-1]
            dip = Dip(before, peak, size, gbs, after)
    return dip


def _allowed(expected: Expectation | None, before: int, size: int) -> float:
    """The share that the model itself expects of the greater size, at most 1."""
    if expected is None:
        return 1.0
    first, then = expected.busbw.get(before), expected.busbw.get(size)
    return min(then / first, 1.0) if first and then else 1.0


def _in_both(rows: Sequence[BenchRow], dip: Dip, deep: float) -> bool:
    """Whether every row of the size dips in every block that was measured."""
    seen = [
        timing.busbw_gbs
        for row in rows
        if row.size == dip.size and not row.cut
        for timing in (row.out_of_place, row.in_place)
        if timing.busbw_gbs is not None
    ]
    return bool(seen) and all(gbs < dip.peak * deep for gbs in seen)


def _switch(expected: Expectation | None, dip: Dip) -> str:
    """The algorithm and protocol that NCCL's model goes over to between the two sizes; "" for none."""
    for name, value, formula in expected.terms if expected is not None else ():
        start = formula.removeprefix("from ").removesuffix(" B")
        if name == "NCCL runs" and start.isdecimal() and dip.before < int(start) <= dip.size:
            return value
    return ""
