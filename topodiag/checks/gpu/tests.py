"""Tests of GPUs that somebody ran: copies that are far slower than those of the peers, and DCGM's failed tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.comparisons import far
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu
from topodiag.model.finding import Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.units import fold_runs, grouped, in_gbs, spell_gbs

FEWEST = 4
"""GPUs that must have been measured: of fewer, nobody can say which is the odd one."""
ODD_SHARE = 0.25
"""At most this share of the GPUs is odd; more are a machine of two kinds of places."""
HOST_SHARE = 0.6
"""Copies from the host below this share of the median. From the other socket they reach two thirds and more."""
PAIR_SHARE = 0.75
"""Copies between GPUs below this share of the others' median: half of the links leave a half, a way that
left NVLink a tenth to a quarter."""
HALF = 0.5
"""A pace below this share of the peers' is an error, one above it a warning."""
EVEN_SHARE = 0.9
"""The rest is alike where its slowest pair reaches this share of its median: then no place of the board explains it."""
NVLINK_GBS = 60.0
"""No PCIe Gen5 x16 carries more in one direction: pairs above it talk over NVLink. On PCIe alone a pair's place decides
its pace, and an odd GPU need have no fault."""

NO_PLACE_SHARE = 0.125
"""Below this share no place on a board holds a GPU on PCIe that is wired like its peers: another socket leaves half
and more, four lanes of sixteen a quarter."""


_PASSED = "every ring of NCCL passes this GPU, so that the whole node goes at its pace"


@dataclass(frozen=True, slots=True)
class ShortGpu:
    """A GPU that fell short, and in what; None where the test names no GPU."""

    gpu: Gpu | None
    words: str
    share: float | None
    evidence: tuple[Fact[float] | Fact[tuple[str, ...]], ...]


class SlowGpuInTest(NodeCheck, id="GPU006"):
    """GPU006: a test on the node finds a GPU far below its peers

    What it finds
        A GPU whose copies to and from all other GPUs are far slower than those of the rest among themselves; one whose
        copies from the host's memory are; and one that failed a test of DCGM's.

    Why it matters
        Every ring of NCCL passes the slow GPU: 25 GB/s in place of 390 takes the whole node down to PCIe's pace.

    Evidence it reads
        The tables of nvbandwidth and of p2pBandwidthLatencyTest; `dcgmi diag` and `dcgmi health`; gpu_burn.

    When it stays silent
        No such test was run: not applicable. Fewer than four GPUs were measured: unknown. More than a quarter of them
        are slow, or all pairs go over PCIe (below 60 GB/s) and the slow GPU reaches an eighth of the rest: their places
        on the board may explain it, unknown. Copies from the host at 60 % and more: the other socket's memory costs as
        much. Tests of DCGM that are of the installation, not of a GPU; NVLink of cards without a bridge.

    How to confirm
        nvbandwidth -t device_to_device_memcpy_read_ce      again on an idle node: the row and column of the GPU
        dcgmi diag -r 3 -i GPU                              the test alone, on this GPU
        nvidia-smi nvlink -s -i GPU; nvidia-smi -q -i GPU   links, PCIe width and generation, clocks

    How to fix
        Look for what slowed it: NVLinks that are down, a narrow PCIe link, clocks held down, another job on the GPU.
        Reset the GPUs together; if it stays, power-cycle the node; then have the GPU exchanged.

    References
        NVIDIA/nvbandwidth README; cuda-samples p2pBandwidthLatencyTest; DCGM dcgmlib/dcgm_errors.h.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        short_gpus = (*_failed(judged), *_slow_pairs(judged), *_slow_host_copies(judged))
        if short_gpus:
            alike = grouped((short_gpu.words, short_gpu) for short_gpu in short_gpus)
            return self.with_findings(judged, [self._short(judged, words, group) for words, group in alike.items()])
        paces = [fact.get(0.0) for fact in judged.copies.values()]
        hosts = [gpu for gpu in judged.gpus if gpu.host_copy_gbs.known]
        if not paces and not hosts:
            passed = judged.passed_tests.known
            return self.clean(judged) if passed else self.not_applicable(judged, "no test of its GPUs in the evidence")
        even = bool(paces) and max(paces) > NVLINK_GBS and min(paces) >= PAIR_SHARE * max(paces)
        if (even and len(_measured(judged)) >= FEWEST) or (not paces and len(hosts) >= FEWEST):
            return self.clean(judged)
        why = "few GPUs were measured"
        if paces:
            why = f"pairs of GPUs copied at {spell_gbs(min(paces))} to {in_gbs(max(paces))}, and whether their places"
            why += " on the board explain it is not in the evidence"
        measured = Coverage(max(len(_measured(judged)), len(hosts)), len(judged.gpus), "GPUs")
        return self.unknown(judged, why, measured)

    def _short(self, judged: Node, words: str, alike: Sequence[ShortGpu]) -> Finding:
        labels = [short_gpu.gpu.label for short_gpu in alike if short_gpu.gpu is not None]
        share = alike[0].share
        return self.finding(
            self.where(judged, gpus=labels),
            "slow in test",
            f"{fold_runs(labels)}: {words}" if labels else f"{words} (no GPU is named)",
            severity=Severity.ERROR if share is not None and share < HALF else Severity.WARNING,
            observed=words,
            expected="the pace of its peers" if share is not None else "the test passes",
            cost=Cost(share=None if share is None else 1 - share, text=_PASSED),
            evidence=[fact for short_gpu in alike for fact in short_gpu.evidence],
        )


def _failed(node: Node) -> Iterator[ShortGpu]:
    for gpu, fact in ((None, node.failed_tests), *((gpu, gpu.failed_tests) for gpu in node.gpus)):
        if fact.value:
            words = "; ".join(fact.value[:2])
            verdict = words if words.startswith("gpu_burn") else f"DCGM: {words}"
            yield ShortGpu(gpu, verdict, None, (fact,))


def _slow_host_copies(node: Node) -> Iterator[ShortGpu]:
    speeds = {gpu.index: speed for gpu in node.gpus if (speed := gpu.host_copy_gbs.value)}
    slow = far(speeds, factor=HOST_SHARE, least=FEWEST, most=ODD_SHARE)
    for gpu in node.gpus:
        if slow is not None and gpu.index in slow.outliers:
            speed = speeds[gpu.index]
            words = f"copies from the host at {in_gbs(speed)}, {spell_gbs(slow.usual)} on its peers"
            yield ShortGpu(gpu, words, speed / slow.usual, (gpu.host_copy_gbs,))


def _slow_pairs(node: Node) -> Iterator[ShortGpu]:
    """GPUs that are slow with all others, where the others are alike among themselves and on NVLink."""
    gpus = _measured(node)
    best = {gpu.label: max(fact.get(0.0) for (a, _), fact in node.copies.items() if a == gpu.label) for gpu in gpus}
    short = far(best, factor=PAIR_SHARE, least=FEWEST, most=ODD_SHARE)
    labels = set(short.outliers) if short is not None else set()
    slow = [gpu for gpu in gpus if gpu.label in labels]
    rest = [fact.get(0.0) for pair, fact in node.copies.items() if labels.isdisjoint(pair)]
    if not slow or not rest:
        return
    from statistics import median  # noqa: PLC0415 - as in `far`

    pace = median(rest)
    on_nvlink = pace > NVLINK_GBS
    if min(rest) >= EVEN_SHARE * pace:
        for gpu in (gpu for gpu in slow if on_nvlink or best[gpu.label] < NO_PLACE_SHARE * pace):
            speed = best[gpu.label]
            words = f"copies with every other GPU at {in_gbs(speed)} and less, {spell_gbs(pace)} among the rest"
            own = next(fact for pair, fact in node.copies.items() if gpu.label in pair)
            yield ShortGpu(gpu, words, speed / pace, (own,))


def _measured(node: Node) -> list[Gpu]:
    labels = {label for pair in node.copies for label in pair}
    return [gpu for gpu in node.gpus if gpu.label in labels]
