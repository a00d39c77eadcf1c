"""Runs of a benchmark that are unsteady: single iterations, or one block of a size, take several times as long."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import BenchCheck
from topodiag.checks.shared.bench_text import size_text, title
from topodiag.model.bench import Benchmark, BenchRow, Timing
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
        rows = [row for row in judged.run.rows if row.size >= LEAST_BYTES]
        if any(_ratio(row) is not None for row in rows):
            return self._iterations(judged, [row for row in rows if _ratio(row) is not None])
        both = [row for row in rows if _apart(row) is not None]
        if not both or judged.run.nranks == 1:
            why = "neither times of single iterations (-I 1, nccl-tests 2.19) nor two blocks"
            return self.not_applicable(judged, why)
        return self._blocks(judged, both)

    def _iterations(self, judged: Benchmark, known: Sequence[BenchRow]) -> Outcome:
        bench_rows = [row for row in known if (_ratio(row) or 0) >= TIMES]
        iterations = judged.run.parameters.get("iters", "")
        few = not (iterations.isdigit() and len(iterations) < 10 and int(iterations) >= ENOUGH_ITERATIONS)
        if len(bench_rows) < FEWEST_SIZES or (few and len(bench_rows) * 2 <= len(known)):
            return self.clean(judged, "the slowest hundredth of the iterations is near the others")
        worst = max(bench_rows, key=lambda row: _ratio(row) or 0)
        timing = worst.best
        message = (
            f"{title(judged.run)}: the slowest hundredth of the iterations takes {_ratio(worst) or 0:.1f} times as long"
            f" as usual at {size_text(worst.size)}, and at {len(bench_rows)} of {len(known)} sizes"
        )
        observed = f"99th percentile {spell_us(timing.p99_us or 0)}, usually {spell_us(_usual(timing))}"
        return self._unsteady(judged, bench_rows, message, observed)

    def _blocks(self, judged: Benchmark, both: Sequence[BenchRow]) -> Outcome:
        slow = [row for row in both if (_apart(row) or 0) >= TIMES]
        if len(slow) < FEWEST_SIZES or 2 * len(slow) >= len(both):
            return self.clean(judged, "both blocks of a size take about as long")
        worst = max(slow, key=lambda row: _apart(row) or 0)
        times = sorted((worst.out_of_place.time_us or 0, worst.in_place.time_us or 0))
        message = (
            f"{title(judged.run)} is unsteady: {_apart(worst) or 0:.1f} times as slow in one block as in the other at "
            f"{size_text(worst.size)}, and {TIMES:.0f} times or more at {len(slow)} of {len(both)} sizes"
        )
        observed = f"{spell_us(times[1])} in one block, {spell_us(times[0])} in the other"
        return self._unsteady(judged, slow, message, observed)

    def _unsteady(self, judged: Benchmark, slow: Sequence[BenchRow], message: str, observed: str) -> Outcome:
        where, advice = self.where(judged.run.hosts), self.advice("jitter", TIMES=TIMES)
        return self.any_of(judged, [self.finding(where, advice, message, observed=observed, evidence=slow)])


def _usual(timing: Timing) -> float:
    """The median of the iterations where the run has it, else their mean."""
    return timing.p50_us or timing.time_us or 0.0


def _ratio(row: BenchRow) -> float | None:
    timing = row.best
    usual = _usual(timing)
    return timing.p99_us / usual if timing.p99_us is not None and usual > 0 else None


def _apart(row: BenchRow) -> float | None:
    """Times as long as the faster block the slower one takes; None where one was not measured."""
    out, inside = row.out_of_place.time_us, row.in_place.time_us
    return max(out, inside) / min(out, inside) if out and inside and not row.cut else None
