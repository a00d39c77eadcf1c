"""NVLink: links below their rate, and pairs of AMD's GPUs whose copies are below those of the others."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterator, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.node import nvlink_evidence as evidence
from topodiag.checks.node.pair_copies import SlowPair, slow_pairs
from topodiag.checks.shared.devices import gpu_spec
from topodiag.checks.shared.prices import slow_nvlinks
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu, NvLink
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.words.fold import fold_runs, plural
from topodiag.words.units import in_gbs, percent

RATE_TOLERANCE_SHARE = 0.02
"""A link counts as slow when it is this much below its peers: drivers print the same rate as 25 and 25.781 GB/s
between boards, never between links of one board."""

UNIFORM_TOLERANCE_SHARE = 0.10
"""Where all links of the node agree, only a rate this much below the product's counts: one driver branch prints the
rate before coding and another after it (25 and 25.781 GB/s on V100 and A100, about 3 %); real down-training steps
are far larger (NVLink 4 to 3 is half the lane rate)."""


@dataclass(frozen=True, slots=True)
class SlowGroup:
    """Links at one rate below what is wanted of them, GB/s, and where that comes from."""

    rate_gbs: float
    want_gbs: float
    source: str
    links: tuple[tuple[Gpu, NvLink], ...]


@dataclass(frozen=True, slots=True)
class SlowLinks:
    """All links below their rate."""

    groups: tuple[SlowGroup, ...]
    coverage: Coverage
    pairs: tuple[SlowPair, ...] = ()


class SlowNvlinks(NodeCheck[SlowLinks]):
    """NVL002: an NVLink runs below its product's rate or below its peers

    What it finds
        Active links whose line rate is below the product's rate, or below the rate of the other links of the same
        kind of GPU. On AMD's GPUs: a pair whose copies (TransferBench, rocm-bandwidth-test) are far below those of the
        other pairs, in one direction or both.

    Why it matters
        A channel is as fast as its slowest link. On an H100 one link at 19 instead of 26.562 GB/s costs 28 % of that
        link's 20.6 GB/s, and rings that NCCL lays over all links evenly wait for it.

    Evidence it reads
        The rate per link of NVML or `nvidia-smi nvlink -s` (line rate, one direction), the datasheet's rate, and the
        rates of the other links. A line rate is never compared with NCCL's rate (26.562 and 20.6 GB/s are the same
        NVLink 4 link).

    When it stays silent
        The product has no NVLink; MIG is on; only links that are up are judged (NVL001 has the others). A link within
        2 % of its peers, or a whole node within 10 % of the datasheet: drivers round differently. No rate was
        read: unknown.

    How to confirm
        nvidia-smi nvlink -s                  the rate of every link
        nvidia-smi nvlink -gBwMode            FULL unless somebody chose a lower bandwidth mode
        nvidia-smi nvlink -e                  a marginal link also counts errors (NVL003)

    How to fix
        Where a bandwidth mode was set, set it back (`nvidia-smi nvlink -sBwMode FULL`, no job on the GPUs). Else
        reset the GPUs of the board; a link that trains low again is marginal hardware: exchange the GPU or baseboard.

    References
        probes and datasheets: V100 25.781, A100 25, H100 and H200 26.562, B200 and GB200 53.125 GB/s per link and
        direction; NCCL src/graph/topo.h v2.30 for NCCL's rate of a link.
    """

    id = "NVL002"
    title = "an NVLink runs below its product's rate or below its peers"

    def observe(self, judged: Node, peers: Sequence[Node]) -> SlowLinks | Outcome:
        if pairs := slow_pairs(judged):
            return SlowLinks((), Coverage(len(judged.copies), len(judged.copies), "pairs of GPUs copied"), pairs)
        return self._of_links(judged, [gpu for gpu in judged.gpus if not evidence.no_question(gpu)])

    def _of_links(self, judged: Node, asked: Sequence[Gpu]) -> SlowLinks | Outcome:
        if not asked:
            return self.not_applicable(judged, "no GPU here has NVLinks to judge")
        if not any(gpu.nvlinks or _may_have_links(gpu) for gpu in asked):
            return self.not_applicable(judged, "no NVLinks in the evidence, and none that must be there")
        up = [(gpu, link) for gpu in asked for link in gpu.nvlinks if evidence.is_up(link)]
        rated = [(gpu, link) for gpu, link in up if link.line_gbs.value]
        if not rated:
            return self.unknown(judged, "no link rate was read" if up or asked else "no link is up")
        coverage = Coverage(len(rated), max(len(up), len(rated)), "active links")
        groups: dict[tuple[float, float, str], list[tuple[Gpu, NvLink]]] = defaultdict(list)
        alike: dict[str | None, Tally[float]] = defaultdict(Tally)
        for gpu, link in rated:
            alike[gpu.name.value][round(link.line_gbs.get(0.0), 3)] += 1
        for gpu, link in rated:
            wanted = _rate_wanted(gpu, link, alike[gpu.name.value])
            if wanted is not None:
                groups[link.line_gbs.get(0.0), *wanted].append((gpu, link))
        if not groups:
            return self.clean(judged, coverage=coverage)
        return SlowLinks(tuple(SlowGroup(*key, tuple(links)) for key, links in groups.items()), coverage)

    def tell(self, judged: Node, observed: SlowLinks) -> Iterator[Finding]:
        for group in observed.groups:
            yield self._report(judged, group, observed.coverage)
        for pair in observed.pairs:
            yield self._slow_pair(judged, pair, observed.coverage)

    def _slow_pair(self, node: Node, pair: SlowPair, coverage: Coverage) -> Finding:
        share = 1 - pair.gbs / pair.usual_gbs
        return self.finding(
            node,
            Severity.WARNING,
            f"{pair.start} to {pair.end} copies at {in_gbs(pair.gbs)}, the other pairs at {in_gbs(pair.usual_gbs)}",
            observed=f"{in_gbs(pair.gbs)} from {pair.start} to {pair.end}",
            expected=f"{in_gbs(pair.usual_gbs)}, as {pair.others} other pairs reach: pairs of one board differ little",
            fix=(
                "run the test again on the idle node: another program on one of the two GPUs slows it, too",
                "`nvidia-smi nvlink -s` and `nvidia-smi nvlink -e`: is the link of this pair up, does it count errors?",
                "drain the node and reset its GPUs together: `nvidia-smi --gpu-reset`; if it stays, have the board"
                " exchanged",
            ),
            gpus=(pair.start, pair.end),
            links=(f"{pair.start} to {pair.end}",),
            cost=Cost(pair.usual_gbs - pair.gbs, share, "rings and all-to-all over this pair go at its pace"),
            evidence=[pair.fact],
            coverage=coverage,
            confidence=Confidence.MEDIUM,
        )

    def _report(self, node: Node, group: SlowGroup, coverage: Coverage) -> Finding:
        rate, want, source, members = group.rate_gbs, group.want_gbs, group.source, group.links
        labels = list(dict.fromkeys(gpu.label for gpu, _ in members))
        share = 1 - rate / want
        product = gpu_spec(members[0][0])
        nccl = product.nvlink_nccl_gbs if product is not None else 0.0
        worst = max(sum(gpu.label == label for gpu, _ in members) for label in labels)
        lost = slow_nvlinks(rate, want, worst, nccl)
        text = f"{percent(share)} of {plural(worst, 'link')} of a GPU"
        if nccl:
            text += f": {share:.2f} x {worst} x {in_gbs(nccl)} = {in_gbs(lost)} per direction by NCCL's rate per link"
        by_product = source.startswith("datasheet")
        return self.finding(
            node,
            Severity.ERROR if by_product else Severity.WARNING,
            f"{fold_runs(labels)}: {plural(len(members), 'NVLink')} at {in_gbs(rate)} instead of {in_gbs(want)}",
            observed=f"{in_gbs(rate)} line rate per direction",
            expected=f"{in_gbs(want)} line rate per direction ({source})",
            fix=(
                "see whether somebody chose a lower bandwidth mode: `nvidia-smi nvlink -gBwMode` should say FULL",
                "drain the node and reset its GPUs together: `nvidia-smi --gpu-reset`, then `nvidia-smi nvlink -s`",
                "a link that trains low again is marginal: have the GPU or its baseboard exchanged",
            ),
            gpus=labels,
            links=[f"{gpu.label} link {link.index}" for gpu, link in members],
            cost=Cost(lost or None, share, text),
            evidence=[link.line_gbs for _, link in members],
            coverage=coverage,
            confidence=Confidence.HIGH if by_product else Confidence.MEDIUM,
        )


def _may_have_links(gpu: Gpu) -> bool:
    """Whether links are to be expected: unknown products may have some, cards with bridge connectors need not."""
    spec = gpu_spec(gpu)
    return spec is None or (spec.nvlinks > 0 and not spec.bridged)


def _rate_wanted(gpu: Gpu, link: NvLink, alike: Tally[float]) -> tuple[float, str] | None:
    """The rate this link falls short of and where that comes from, or None when it does not. `alike` counts the rates
    of the links of all GPUs of this name."""
    rate = link.line_gbs.get(0.0)
    common, count = alike.most_common(1)[0]
    total = alike.total()
    spec = gpu_spec(gpu)
    product = spec.nvlink_line_gbs if spec is not None else 0.0
    if product and rate < product * (1 - UNIFORM_TOLERANCE_SHARE):
        return product, f"datasheet of {spec.name if spec else ''}"
    if count * 2 > total and rate < common * (1 - RATE_TOLERANCE_SHARE):
        return common, f"{count} of {total} peer links"
    return None
