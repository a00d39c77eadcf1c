"""Measured bandwidth below what the machine should reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.checks.interface import Advice, BenchCheck
from topodiag.checks.shared.bench_text import measured, place, size_text, title
from topodiag.model.bench import Benchmark, Expectation, Hypothesis
from topodiag.model.finding import Cost, Finding, Outcome, Severity
from topodiag.words.units import in_gbs, percent, spell_gbs

FEWEST = 3
"""Sizes below which a sweep is no fit: one slow size may be an accident, but not one at less than half."""

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
