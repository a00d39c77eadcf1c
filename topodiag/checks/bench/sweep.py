"""Sweeps that are not even: a size slower than smaller ones, iterations or blocks that take several times as long."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from topodiag.checks.interface import BenchCheck
from topodiag.checks.shared.bench_text import measured, place, same_run, size_text, title
from topodiag.lazy import dataclass
from topodiag.model.bench import Benchmark, BenchRow, Expectation
from topodiag.model.finding import Cost, Outcome, Severity
from topodiag.words.units import in_gbs, spell_gbs, spell_us

DEEP = 0.75
"""Share of a smaller size's bandwidth below which a size dips. Runs repeat to a tenth."""

LEAST_BYTES = 64 << 10
"""Below, times are latency, whose slowest iteration is often several times the others."""

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
        all_reduce_perf -b LOW -e HIGH -f 1.2 -g 8 -n 100      repeat around the size of the dip
        NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING all_reduce_perf -b LOW -e HIGH -f 1.2 -g 8   by size what runs
        NCCL_PROTO=^LL128 all_reduce_perf -b LOW -e HIGH -f 1.2 -g 8
        NCCL_ALGO=Ring all_reduce_perf -b LOW -e HIGH -f 1.2 -g 8

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
        around = dip.before, dip.after[0] if dip.after else dip.size
        why = f", where NCCL may go over to {switch}" if switch else varies
        finding = self.finding(
            self.where(benchmark.run.hosts),
            "dip",
            f"{title(run)} falls from {in_gbs(dip.peak)} at {size_text(dip.before)} to {spell_gbs(dip.low)} at "
            f"{size_text(dip.size)}{why}, and {_end(dip)}",
            severity=_severity(dip),
            observed=f"{in_gbs(dip.low)} at {size_text(dip.size)} ({place(benchmark)})",
            expected=f"at least {in_gbs(dip.peak * DEEP)}: {size_text(dip.before)} has {spell_gbs(dip.peak)}",
            fix=self._steps(dip, switch, *map(size_text, around)),
            confirm=same_run(run, "-b LOW -e HIGH", around),
            cost=Cost(dip.peak - dip.low, share, f"at sizes around {size_text(dip.size)}"),
            evidence=tuple(row.origin for row in run.rows if row.size == dip.size) or (run.origin,),
        )
        return self.any_of(benchmark, [finding])

    def _steps(self, dip: Dip, switch: str, low: str, high: str) -> tuple[str, ...]:
        algorithm, _, protocol = switch.partition("/")
        cliff, other = "a cliff" if dip.after is None else "", "another protocol" if protocol else ""
        return self.steps("repeat there", cliff, other, low=low, high=high, algorithm=algorithm, protocol=protocol)


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


TIMES = 3.0
FEWEST_SIZES = 2
ENOUGH_ITERATIONS = 100
"""Fewer, and the 99th percentile is the one slowest iteration: then most of the sizes must show it."""


class IterationsJitter(BenchCheck, id="BEN007"):
    """BEN007: single iterations take several times as long as the others

    What it finds
        Sizes of 64 KiB or more at which the slowest hundredth of the iterations takes three times the usual time; where
        single iterations were not timed, two sizes or more of which one block (out of place, in place) takes three
        times as long as the other.

    Why it matters
        A mean hides it: a training step waits for its slowest collective. Clocks that throttle, a port that flaps and
        other traffic on the network look like this, and a link that is merely slow does not.

    Evidence it reads
        `-I 1` of nccl-tests 2.19 and later: the columns i_min, i_max, i_p99, and per_iter_timing in its JSON. Without
        it the times of both blocks.

    When it stays silent
        One size alone. With fewer than 100 iterations the 99th percentile is the slowest one: then more than half of
        the sizes must show it. One block that is slower at half of the sizes and more: that is how it works here. One
        rank, which in place has nothing to do. Neither -I 1 nor both blocks: not applicable.

    How to confirm
        all_reduce_perf -b 64M -e 1G -f 2 -g 8 -n 200 -I 1    the same again, and on other nodes
        nvidia-smi -q -d CLOCK,PERFORMANCE -l 1          on the nodes, while it runs

    How to fix
        Clocks or power that change (GPU004), ports that go up and down (NIC001), retransmissions (NIC003); without
        these, ask who else uses the network.

    References
        nccl-tests src/util.cu 2.19 (per-iteration timing).
    """

    def observe(self, judged: Benchmark, peers: Sequence[Benchmark]) -> Outcome:
        run = judged.run
        rows = [row for row in run.rows if row.size >= LEAST_BYTES]
        iterations = list(filter(None, map(_of_iterations, rows)))
        timed = iterations or list(filter(None, map(_of_blocks, rows if run.nranks != 1 else ())))
        if not timed:
            why = "neither times of single iterations (-I 1, nccl-tests 2.19) nor two blocks"
            return self.not_applicable(judged, why)
        slow = [spread for spread in timed if spread[0] >= TIMES]
        count = run.parameters.get("iters", "")
        enough = count.isdigit() and len(count) < 10 and int(count) >= ENOUGH_ITERATIONS
        is_usual = not enough and 2 * len(slow) <= len(timed) if iterations else 2 * len(slow) >= len(timed)
        if len(slow) < FEWEST_SIZES or is_usual:
            alike = "the slowest hundredth of the iterations is near the others"
            return self.clean(judged, alike if iterations else "both blocks of a size take about as long")
        times, slow_us, usual_us, worst = max(slow, key=itemgetter(0))
        how = f" is unsteady: {times:.1f} times as slow in one block as in the other"
        observed = f"{spell_us(slow_us)} in one block, {spell_us(usual_us)} in the other"
        if iterations:
            how = f": the slowest hundredth of the iterations takes {times:.1f} times as long as usual"
            observed = f"99th percentile {spell_us(slow_us)}, usually {spell_us(usual_us)}"
        finding = self.finding(
            self.where(run.hosts),
            self.advice("jitter", TIMES=TIMES),
            f"{title(run)}{how} at {size_text(worst.size)}, and {TIMES:.0f} times or more at {len(slow)} of"
            f" {len(timed)} sizes",
            observed=observed,
            evidence=[row for *_, row in slow],
            confirm=same_run(run, "-b 64M -e 1G", [row.size for *_, row in slow]),
        )
        return self.any_of(judged, [finding])


Spread = tuple[float, float, float, BenchRow]
"""How many times as long as usual a size takes at times, that time, the usual one, and the row."""


def _of_iterations(row: BenchRow) -> Spread | None:
    """The slowest hundredth of the iterations against their median, or where the run has none, their mean."""
    late, usual = row.best.p99_us, row.best.p50_us or row.best.time_us or 0.0
    return (late / usual, late, usual, row) if late is not None and usual > 0 else None


def _of_blocks(row: BenchRow) -> Spread | None:
    """The slower block against the faster one; None where one was not measured."""
    out, inside = row.out_of_place.time_us, row.in_place.time_us
    if not out or not inside or row.cut:
        return None
    late, usual = max(out, inside), min(out, inside)
    return late / usual, late, usual, row
