"""The time of the smallest operations above what the machine's links explain."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import BenchCheck
from topodiag.checks.shared.bench_text import place, title
from topodiag.model.bench import Benchmark
from topodiag.model.finding import Confidence, Outcome
from topodiag.words.units import spell_us

SMALL = 4096
"""Bytes up to which a size shows latency alone."""

TIMES_NODE, TIMES_NETWORK = 5.0, 8.0
"""Times NCCL's own latency from which a floor is high. Published healthy nodes come to 2.6 times (launching a kernel is
not in NCCL's figure), healthy cloud networks to 5 times."""

LEAST_US = 50.0
"""Above NCCL's figure by less is no matter whatever the ratio."""


class LatencyFloorHigh(BenchCheck, id="BEN002"):
    """BEN002: small operations take many times what the links need

    What it finds
        The least time of sizes up to 4 KiB is more than five times (between nodes eight times) the latency that NCCL's
        tuning model has for the collective on this machine, and more than 50 us above it.

    Why it matters
        Tensor-parallel inference and pipeline stages send small messages; a floor of 400 us instead of 20 limits them
        at any bandwidth. A high floor is also the first sign of sockets instead of RDMA, a debug build or busy CPUs.

    Evidence it reads
        The smallest sizes of the table; the number of ranks and nodes; NCCL's latency model for the machine.

    When it stays silent
        No size up to 4 KiB, or no expectation: unknown. Point-to-point collectives (alltoall, sendrecv): NCCL has no
        latency for them. Runs whose operations overlap (aggregated iterations) or are replayed as graphs.

    How to confirm
        all_reduce_perf -b 8 -e 4K -f 2 -n 1000
        NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 4K -f 2      `via NET/Socket` or `via SHM` where RDMA or P2P should be
        top                                                  the cores that the ranks use

    How to fix
        RDMA instead of sockets (NET001), processes on cores next to their GPU (NUM002), performance governor, no debug
        build, no NCCL_DEBUG_SUBSYS=ALL or CUDA_LAUNCH_BLOCKING=1.

    References
        NCCL src/graph/tuning.cc, baseLatencies and hwLatencies v2.30.
    """

    def observe(self, benchmark: Benchmark, others: Sequence[Benchmark]) -> Outcome:
        run, expected = benchmark.run, benchmark.expected
        if expected is None:
            return self.unknown(benchmark, benchmark.why or "no expectation: the machine is not known")
        if not expected.latency_us:
            return self.unknown(benchmark, "there is no model of the latency of this collective on this machine")
        if run.parameters.get("graph", "0") not in ("0", "") or run.parameters.get("aggIters", "1") not in ("1", ""):
            return self.not_applicable(benchmark, "operations are merged or replayed: their times are not latencies")
        floor = benchmark.fit.latency_us
        small = [row for row in run.rows if 0 < row.size <= SMALL and row.best.time_us]
        if floor is None or not small:
            return self.unknown(benchmark, f"no size up to {SMALL} B was measured")
        times = floor / expected.latency_us
        most = TIMES_NETWORK if len(run.hosts) != 1 else TIMES_NODE
        if times < most or floor - expected.latency_us < LEAST_US:
            return self.clean(benchmark, f"{spell_us(floor)}, {times:.1f} times NCCL's {spell_us(expected.latency_us)}")
        finding = self.finding(
            self.where(benchmark.run.hosts),
            self.advice("latency", latency_us=spell_us(expected.latency_us), most=most),
            f"{title(run)} takes {spell_us(floor)} for the smallest sizes, {times:.0f} times what the links need",
            observed=f"{spell_us(floor)} up to {SMALL} B ({place(benchmark)})",
            cost=f"{spell_us(floor - expected.latency_us)} per small operation",
            evidence=(small[0].origin or run.origin,),
            confidence=Confidence.LOW if expected.confidence is Confidence.LOW else Confidence.MEDIUM,
        )
        return self.any_of(benchmark, [finding])
