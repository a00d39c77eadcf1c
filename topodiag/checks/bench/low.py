"""Bandwidth below what the machine should reach, or another placement has, and times of the smallest operations above
what its links explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.checks.interface import Advice, BenchCheck
from topodiag.checks.peers import of_everyone
from topodiag.checks.shared.bench_text import measured, place, same_run, size_text, title
from topodiag.lazy import dataclass
from topodiag.model.bench import SLOW_PLACEMENT, Benchmark, Expectation, Hypothesis
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.words.units import grouped, in_gbs, percent, spell_gbs, spell_us

FEWEST = 3
"""Sizes below which a sweep is no fit: one slow size may be an accident, but not one at less than half."""

AGAIN = 5
"""The greatest sizes of a run which the command to confirm it measures again."""

LIKELY = 0.4
"""Likelihood from which a cause is named in the message."""
_SHOWN, _INFERRED = "; likely cause: ", "; possible cause: "
"""What leads to a cause that the evidence shows, and to one that follows from the numbers alone."""


class BandwidthLow(BenchCheck, id="BEN001"):
    """BEN001: measured bus bandwidth is below what the machine should reach

    What it finds
        The bus bandwidth of the greatest size falls short of the expectation by more than healthy machines of the kind
        do. The expectation is NCCL's own prediction for the machine (graph search, tuning, algorithm for the size),
        times what published healthy results of the same GPU generation, transport and collective reach of it. The
        shortfall is compared with single causes, each priced by the same model on the changed machine; the likeliest is
        named with what it predicts.

    Why it matters
        Training steps wait for collectives. A fixed gate per machine type passes a node that lost one NIC of eight and
        fails a healthy one with another NIC or algorithm.

    Evidence it reads
        The table of nccl-tests; the machine from a bundle, a topology file, an NCCL log, a system's name, or the GPU
        names and ranks per host of the output itself (then with low confidence). `topodiag bench` prints every term.

    When it stays silent
        Fewer than three sizes, unless the run is at less than half of what is normal, or a greatest size that is bound
        by latency: unknown. No machine known, a collective without a model, GPUs outside the catalogue: unknown. A
        bandwidth above the physical limit: unknown. Check the number of ranks and the placement. Where only the GPU
        names are known and what was measured would be normal for another machine with these GPUs: unknown, with the
        name of that machine. A run that is a third and more below what such a guessed machine should reach is low, or
        ran on another machine: unknown. Nodes with fewer GPUs than any machine that is built with these, known by GPU
        names alone, have any network: no run between them is low.

    How to confirm
        Do first what the finding says to confirm the likeliest cause. Then measure one pair of nodes at a time:
        all_reduce_perf -b 1G -e 16G -f 2 -g 8
        NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,TUNING all_reduce_perf -b 1G -e 16G -f 2 -g 8

    How to fix
        Remove the cause; each hypothesis names the check (NIC001, GDR001, NVL001, ..) whose page says how.

    References
        NCCL src/graph/tuning.cc and search.cc; nccl-tests doc/PERFORMANCE.md; expect/calibration.toml for
        the published results. nccl-tests issues 40, 119, 182, 274, 293; nccl issues 76, 495.
    """

    def observe(self, benchmark: Benchmark, others: Sequence[Benchmark]) -> Outcome:
        expected = benchmark.expected
        if benchmark.verdict not in ("normal", "low") or expected is None:
            return self.unknown(benchmark, benchmark.why or "no expectation: the machine is not known")
        sizes = measured(benchmark.run)
        if len(sizes) < FEWEST and not benchmark.severe:
            return self.unknown(benchmark, f"{len(sizes)} sizes are too few to tell a slow run from a slow moment")
        if benchmark.verdict == "normal":
            return self.clean(benchmark, benchmark.why or "as expected")
        size, gbs = sizes[-1]
        wanted = expected.busbw.get(size, expected.busbw_gbs)
        if not 0 < gbs < wanted:
            return self.unknown(benchmark, f"no bandwidth was measured at {size_text(size)}")
        return self.with_findings(benchmark, (self._finding(benchmark, expected, (size, gbs, wanted)),))

    def _finding(self, benchmark: Benchmark, expected: Expectation, at: tuple[int, float, float]) -> Finding:
        size, gbs, wanted = at
        short = 1 - gbs / wanted
        first = next((one for one in benchmark.hypotheses[:1] if one.likelihood >= LIKELY), None)
        named = f"{_SHOWN if first.shown else _INFERRED}{first.cause}" if first is not None else ""
        return self.finding(
            self.where(benchmark.run.hosts),
            Advice(Severity.ERROR if benchmark.severe else Severity.WARNING, expected.confidence),
            f"{title(benchmark.run)} reaches {in_gbs(gbs)} at {size_text(size)}, {percent(short)} below what "
            f"{expected.machine} should{named}",
            observed=f"{in_gbs(gbs)} bus bandwidth at {size_text(size)} ({place(benchmark)})",
            expected=f"{in_gbs(wanted)}, normal from {spell_gbs(wanted * expected.normal_gbs / expected.busbw_gbs)}",
            fix=_steps(benchmark.hypotheses),
            cost=Cost(wanted - gbs, short, "bus bandwidth of this collective against the expectation"),
            evidence=(benchmark.run,),
            confirm=same_run(benchmark.run, "-b 1G -e 16G", [size for size, _ in measured(benchmark.run)[-AGAIN:]]),
        )


def without_guess(low: Finding) -> Finding:
    """The finding of a run whose loss another check explains: what its numbers alone suggest gives way."""
    return replace(low, message=low.message.partition(_SHOWN)[0].partition(_INFERRED)[0], fix=())


def _steps(hypotheses: Sequence[Hypothesis]) -> list[str]:
    """What to look at, likeliest first."""
    steps = []
    for hypothesis in hypotheses[:3]:
        page = f"; topodiag explain {hypothesis.check}" if hypothesis.check else ""
        look = f": {hypothesis.confirm[0]}" if hypothesis.confirm else ""
        steps.append(f"check for {hypothesis.cause} ({percent(hypothesis.likelihood)} likely{page}){look}")
    return steps or ["measure pairs of nodes: topodiag bench plan --nodelist NODES..."]


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
        all_reduce_perf -b 8 -e 4K -f 2 -g 8 -n 1000
        NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 4K -f 2 -g 8   `via NET/Socket`, `via SHM`: not RDMA, not P2P
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
        times, more_us = floor / expected.latency_us, floor - expected.latency_us
        most = TIMES_NETWORK if len(run.hosts) != 1 else TIMES_NODE
        if times < most or more_us < LEAST_US:
            return self.clean(benchmark, f"{spell_us(floor)}, {times:.1f} times NCCL's {spell_us(expected.latency_us)}")
        finding = self.finding(
            self.where(benchmark.run.hosts),
            self.advice("latency", latency_us=spell_us(expected.latency_us), most=most, more=spell_us(more_us)),
            f"{title(run)} takes {spell_us(floor)} for the smallest sizes, {times:.0f} times what the links need",
            observed=f"{spell_us(floor)} up to {SMALL} B ({place(benchmark)})",
            evidence=(small[0].origin or run.origin,),
            confirm=same_run(run),
            confidence=Confidence.LOW if expected.confidence is Confidence.LOW else Confidence.MEDIUM,
        )
        return self.any_of(benchmark, [finding])


LEAST_RUNS = 3
"""Runs with a node, and without it, from which counting names it: two may share a cable or a moment."""


class PlacementsApart(BenchCheck, id="BEN005"):
    """BEN005: one placement is more than 30 % slower than another

    What it finds
        Runs of the same collective with the same number of ranks on different nodes (a sweep, files named as
        placements, tests of perftest between two nodes) whose bus bandwidth at the greatest common size differs by more
        than 30 %. The slower one is named with the best one beside it. Where three runs or more are slow, all with one
        node, and no run without it is, the node is named, and its runs are one fault.

    Why it matters
        The job's speed depends on where the scheduler puts it: a narrow uplink, an oversubscribed spine, one bad node
        or cable in the slower set.

    Evidence it reads
        Two or more runs of nccl-tests and what they are called; their hosts where the output lists them. Tests of
        perftest (`ib_write_bw`) whose pair stands in a line above or in the name of the file (`g01-g09.txt`).

    When it stays silent
        One placement only, or none with the same collective, ranks and ranks per host: not applicable. Placements that
        have no common size of 4 MiB or more (perftest: 64 KiB): unknown. A node set that was measured twice is one
        placement, by its better run: differences in time are no placement.

    How to confirm
        topodiag bench plan --nodelist NODES   a second, different pairing of the slower nodes
        all_reduce_perf -b 1G -e 16G -f 2      on each half of the slower placement

    How to fix
        The node, cable or uplink that the pairings have in common; if it is the fabric's oversubscription, ask the
        scheduler for one block (Slurm topology/tree, --switches=1).

    References
        Slurm topology.conf(5); NVIDIA DGX SuperPOD reference architecture, rail-optimised fabrics.
    """

    def observe(self, benchmark: Benchmark, others: Sequence[Benchmark]) -> Outcome:
        mine = _name(benchmark)
        alike = of_everyone(benchmark, others, _by_question).get(_question(benchmark) or (), [])
        peers = [one for one in alike if one.name != mine] if mine else []
        if not peers:
            return self.not_applicable(benchmark, "no other placement of the same collective and ranks")
        ours: dict[int, float] = {}
        for one in alike:
            if one.name == mine:
                ours |= {size: max(gbs, ours.get(size, 0.0)) for size, gbs in one.gbs.items()}
        rates = [row for peer in peers if (row := _common(ours, peer.gbs, benchmark.run.least_bytes)) is not None]
        if not rates:
            return self.unknown(benchmark, "no size large enough that another placement has as well")
        best, gbs, size = max(rates, key=lambda pair: pair[0] / pair[1])
        if best <= 0 or gbs >= best * (1 - SLOW_PLACEMENT):
            return self.clean(benchmark, f"within {percent(SLOW_PLACEMENT)} of {len(peers)} other placements")
        fastest = next(peer for peer in peers if peer.gbs.get(size) == best)
        share = 1 - gbs / best
        node, slow, fast = _node_of_all_slow(alike, size, best * (1 - SLOW_PLACEMENT))
        if node and node in benchmark.run.hosts:
            return self.any_of(benchmark, [self._by_count(node, slow, fast, size, fastest)])
        finding = self.finding(
            self.where(benchmark.run.hosts),
            self.advice("placement", best=in_gbs(best), named=fastest.name),
            f"{title(benchmark.run)}: {mine} is {percent(share)} slower than {fastest.name}",
            observed=f"{in_gbs(gbs)} at {size_text(size)} on {mine}",
            cost=Cost(best - gbs, share, "bus bandwidth against the faster placement"),
            evidence=(benchmark.run, fastest.benchmark.run),
        )
        return self.any_of(benchmark, [finding])

    def _by_count(self, node: str, slow: Sequence[_PlacedRun], fast: int, size: int, fastest: _PlacedRun) -> Finding:
        """One node that all slow runs have in common, and none of `fast` runs: the runs of it are one fault."""
        run, gbs, best = slow[0].benchmark.run, [placed.gbs[size] for placed in slow], fastest.gbs[size]
        of = f" of {run.collective}" if run.collective else ""
        share = 1 - max(gbs) / best
        return self.finding(
            self.where([node]),
            self.advice("slow with more nodes", best=in_gbs(best), node=node),
            f"{node}: all {len(slow)} runs{of} with this node are at least {percent(share)} slower"
            f" than the best run; none of the {fast} runs without it is",
            observed=f"{in_gbs(min(gbs))} to {in_gbs(max(gbs))} at {size_text(size)} with {node}",
            cost=Cost(best - max(gbs), share, "bus bandwidth against the runs without it"),
            evidence=[placed.benchmark.run for placed in (*slow, fastest)],
        )


def _node_of_all_slow(runs: Sequence[_PlacedRun], size: int, limit: float) -> tuple[str, list[_PlacedRun], int]:
    """The one node of which every run at this size is below `limit` GB/s, where no run without it is, with its runs and
    how many are without it; "" where there are several such, or fewer than LEAST_RUNS of it or without it. Hosts are
    those that the runs list."""
    known = [run for run in runs if run.gbs.get(size) and len(set(run.benchmark.run.hosts)) > 1]
    slow = [placed for placed in known if placed.gbs[size] < limit]
    hosts = [frozenset(placed.benchmark.run.hosts) for placed in slow]
    shared = frozenset.intersection(*hosts) if slow else frozenset[str]()
    own = [node for node in shared if sum(node in placed.benchmark.run.hosts for placed in known) == len(slow)]
    fast = len(known) - len(slow)
    return (own[0] if len(own) == 1 and min(len(slow), fast) >= LEAST_RUNS else "", slow, fast)


def _name(benchmark: Benchmark) -> str:
    """The placement: as it was called, else its hosts; "" where neither is known."""
    run = benchmark.run
    return run.placement or ", ".join(sorted(run.hosts))


@dataclass(frozen=True, slots=True)
class _PlacedRun:
    """A run with its placement, and its GB/s by size."""

    benchmark: Benchmark
    name: str
    gbs: dict[int, float]


def _question(benchmark: Benchmark) -> tuple[object, ...] | None:
    """What must be equal so that only the place differs: collective, ranks and ranks per host, algorithm settings. None
    where the ranks are not known, or one alone."""
    run = benchmark.run
    if not run.nranks or run.nranks < 2:
        return None
    choices = tuple(sorted((name, value) for name, value in run.env.items() if name.startswith("NCCL_")))
    return run.collective, run.nranks, run.ranks_per_host, choices


def _by_question(benchmarks: Sequence[Benchmark]) -> dict[tuple[object, ...], list[_PlacedRun]]:
    return grouped(
        (question, _PlacedRun(benchmark, _name(benchmark), dict(measured(benchmark.run))))
        for benchmark in benchmarks
        if (question := _question(benchmark)) is not None
    )


def _common(ours: Mapping[int, float], theirs: Mapping[int, float], least: int) -> tuple[float, float, int] | None:
    """The other's GB/s, the best of this placement's, and the greatest size that both have."""
    size = max((size for size in theirs if size >= least and ours.get(size, 0.0) > 0), default=None)
    return (theirs[size], ours[size], size) if size is not None else None
