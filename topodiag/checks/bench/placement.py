"""The same collective on different placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topodiag.checks.interface import BenchCheck
from topodiag.checks.peers import of_everyone
from topodiag.checks.shared.bench_text import measured, size_text, title
from topodiag.lazy import dataclass
from topodiag.model.bench import SLOW_PLACEMENT, Benchmark
from topodiag.model.finding import Cost, Finding, Outcome
from topodiag.words.units import grouped, in_gbs, percent

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
