"""Runs of a benchmark that are unsteady: single iterations, or one block of a size, take several times as long."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from topodiag.checks.interface import BenchCheck
from topodiag.checks.shared.bench_text import size_text, title
from topodiag.model.bench import Benchmark, BenchRow
from topodiag.model.finding import Outcome
from topodiag.words.units import spell_us

LEAST_BYTES = 64 << 10
"""Below, times are latency, whose slowest iteration is often several times the others."""
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
        all_reduce_perf -b 64M -e 1G -f 2 -n 200 -I 1    the same again, and on other nodes
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
