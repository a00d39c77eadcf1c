"""NVLink and xGMI: links below their rate, and pairs of AMD's GPUs whose copies are below those of the others."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.nvlink import evidence
from topodiag.checks.shared.comparisons import Far, far, tallied
from topodiag.checks.shared.devices import by_xgmi, gpu_spec, word
from topodiag.checks.shared.prices import slow_nvlinks
from topodiag.hardware.amd import PCIE_LANES, amd_gpu_by_name
from topodiag.hardware.catalog import pcie_line_gbs
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu
from topodiag.model.finding import Cost, Coverage, Finding, Outcome
from topodiag.model.maker import dialect_of
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.dialect import AMD
from topodiag.words.units import fold_runs, grouped, in_gbs, percent, plural

RATE_TOLERANCE_SHARE = 0.02
"""A link counts as slow when it is this much below its peers: drivers print the same rate as 25 and 25.781 GB/s
between boards, never between links of one board."""

UNIFORM_TOLERANCE_SHARE = 0.10
"""Where all links of the node agree, only a rate this much below the product's counts: one driver branch prints the
rate before coding and another after it (25 and 25.781 GB/s on V100 and A100, about 3 %); real down-training steps
are far larger (NVLink 4 to 3 is half the lane rate)."""


@dataclass(frozen=True, slots=True)
class RatedLink:
    """A link that is up, and its line rate in GB/s."""

    gpu: Gpu
    label: str
    gbs: Fact[float]

    @property
    def rate(self) -> float:
        return self.gbs.get(0.0)


class SlowNvlinks(NodeCheck, id="NVL002"):
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
        NVLink 4 link). On AMD's GPUs the rates of `amd-smi xgmi`, in text or JSON, and measured copies of pairs.

    When it stays silent
        The product has no NVLink; MIG is on; only links that are up are judged (NVL001 has the others). A link within
        2 % of its peers, or a whole node within 10 % of the datasheet: drivers round differently. An xGMI rate that
        equals the product's PCIe rate: `amd-smi` of 2024 prints the PCIe rate there. No rate was read: unknown.
        Rates differ by more than 10 %, the product is not known, and no rate is that of most links: unknown.

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

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        if (pairs := slow_pairs(judged)) is not None:
            coverage = Coverage(len(judged.copies), len(judged.copies), "pairs of GPUs copied")
            return self.any_of(judged, self._slow_pairs(judged, pairs), coverage)
        return self._of_links(judged, [gpu for gpu in judged.gpus if not evidence.no_question(gpu)])

    def _of_links(self, judged: Node, asked: Sequence[Gpu]) -> Outcome:
        if not asked:
            return self.not_applicable(judged, "no GPU here has NVLinks to judge")
        if not any(gpu.nvlinks or _may_have_links(gpu) for gpu in asked):
            return self.not_applicable(judged, "no NVLinks in the evidence, and none that must be there")
        up = sum(evidence.is_up(link) is True for gpu in asked for link in gpu.nvlinks)
        rated = [link for gpu in asked for link in _rated(judged, gpu)]
        if not rated:
            return self.unknown(judged, "no link rate was read" if up or asked else "no link is up")
        coverage = Coverage(len(rated), max(up, len(rated)), "active links")
        alike = tallied((link.gpu.name.value, round(link.rate, 3)) for link in rated)
        groups = grouped(
            ((link.rate, *wanted), link)
            for link in rated
            if (wanted := _rate_wanted(link, alike[link.gpu.name.value])) is not None
        )
        if not groups and any(min(rates) < max(rates) * (1 - UNIFORM_TOLERANCE_SHARE) for rates in alike.values()):
            return self.unknown(judged, "link rates differ, and neither the product nor most peers say which is right")
        return self.any_of(judged, (self._report(judged, *key, links) for key, links in groups.items()), coverage)

    def _slow_pairs(self, node: Node, slow: Far[tuple[str, str]]) -> Iterator[Finding]:
        for pair in slow.outliers:
            fact, way = node.copies[pair], " to ".join(pair)
            gbs = fact.get(0.0)
            yield self.finding(
                self.where(node, gpus=pair, links=(way,)),
                self.advice("slow pair", usual_gbs=in_gbs(slow.usual), others=slow.of - len(slow.outliers)),
                f"{way} copies at {in_gbs(gbs)}, the other pairs at {in_gbs(slow.usual)}",
                observed=f"{in_gbs(gbs)} from {way}",
                cost=Cost(slow.usual - gbs, 1 - gbs / slow.usual, "rings and all-to-all over this pair go at its pace"),
                evidence=[fact],
            )

    def _report(self, node: Node, rate: float, want: float, source: str, members: Sequence[RatedLink]) -> Finding:
        """Links at one rate below what is wanted of them, GB/s, and where that comes from."""
        labels = list(dict.fromkeys(link.gpu.label for link in members))
        share = 1 - rate / want
        gpu = members[0].gpu
        product, amd = gpu_spec(gpu), amd_gpu_by_name(gpu.name.get(""))
        nccl = product.nvlink_nccl_gbs if product is not None else amd.rccl_gbs if amd is not None else 0.0
        worst = max(sum(link.gpu.label == label for link in members) for label in labels)
        lost = slow_nvlinks(rate, want, worst, nccl)
        text = f"{percent(share)} of {plural(worst, 'link')} of a GPU"
        if nccl:
            text += f": {share:.2f} x {worst} x {in_gbs(nccl)} = {in_gbs(lost)} per direction by NCCL's rate per link"
        by_product = source.startswith("datasheet")
        # The rate of NVLink is fixed when it trains; that of xGMI is the present one, and nobody says it holds at rest.
        certain = by_product and not gpu.xgmi_gbs.known
        return self.finding(
            self.where(node, gpus=labels, links=[link.label for link in members]),
            self.advice("slow link", want=in_gbs(want), source=source),
            f"{fold_runs(labels)}: {plural(len(members), 'NVLink')} at {in_gbs(rate)} instead of {in_gbs(want)}",
            sure=certain,
            observed=f"{in_gbs(rate)} line rate per direction",
            cost=Cost(lost or None, share, text),
            evidence=dict.fromkeys(link.gbs for link in members),
        )


def _may_have_links(gpu: Gpu) -> bool:
    """Whether links are to be expected: unknown products may have some, cards with bridge connectors need not."""
    spec = gpu_spec(gpu)
    return spec is None or (spec.nvlinks > 0 and not spec.bridged)


def _rated(node: Node, gpu: Gpu) -> list[RatedLink]:
    """The links of a GPU that are up and have a rate; those of xGMI one for each GPU that they lead to."""
    if not gpu.xgmi_gbs.known:
        up = [link for link in gpu.nvlinks if evidence.is_up(link) and link.line_gbs.get(0.0) > 0]
        return [RatedLink(gpu, f"{gpu.label} link {link.index}", link.line_gbs) for link in up]
    spec, rate = amd_gpu_by_name(gpu.name.get("")), gpu.xgmi_gbs.get(0.0)
    host = (pcie_line_gbs(spec.pcie_gen, PCIE_LANES) or 0.0) if spec is not None else 0.0
    if spec is not None and rate < spec.line_gbs and abs(rate - host) < UNIFORM_TOLERANCE_SHARE * host:
        return []
    others = [peer.label for peer in node.gpus if peer is not gpu]
    joined = [peer for peer in others if by_xgmi(word(node, gpu.label, peer).value)]
    return [RatedLink(gpu, f"{gpu.label} to {peer}", gpu.xgmi_gbs) for peer in joined or others]


def _rate_wanted(link: RatedLink, alike: Tally[float]) -> tuple[float, str] | None:
    """The rate this link falls short of and where that comes from, or None when it does not. `alike` counts the rates
    of the links of all GPUs of this name."""
    common, count = alike.most_common(1)[0]
    total = alike.total()
    spec, amd = gpu_spec(link.gpu), amd_gpu_by_name(link.gpu.name.get(""))
    name = spec.name if spec is not None else amd.name if amd is not None else ""
    product = spec.nvlink_line_gbs if spec is not None else amd.line_gbs if amd is not None else 0.0
    if product and link.rate < product * (1 - UNIFORM_TOLERANCE_SHARE):
        return product, f"datasheet of {name}"
    if count * 2 > total and link.rate < common * (1 - RATE_TOLERANCE_SHARE):
        return common, f"{count} of {total} peer links"
    return None


# Copies between AMD's GPUs: pairs that are far below the others of their board. Judges nothing else.


FEWEST = 12
"""Pairs that were measured, from which on one of them can stand out: those of four GPUs, both ways."""
SLOW_SHARE, EVEN_SHARE = 0.85, 0.9
"""Of the usual pace: below it a pair is slow, and above it are all the others. Healthy MI300X and MI350X boards spread
by 1 % (TransferBench p2p, public outputs); boards that join pairs by unequal links are not even, and not judged."""
MOST_OF_ONE = 2
"""Slow pairs that one GPU may have: more are the GPU's (GPU006), not a link's."""


def slow_pairs(node: Node) -> Far[tuple[str, str]] | None:
    """The pairs that stand out, where all others are even."""
    if dialect_of(node) is not AMD:
        return None
    copies = {pair: fact.get(0.0) for pair, fact in node.copies.items()}
    slow = far(copies, factor=SLOW_SHARE, least=FEWEST, close=1 / EVEN_SHARE)
    of_gpu = Tally(label for pair in slow.outliers for label in pair) if slow is not None else Tally[str]()
    return slow if of_gpu and max(of_gpu.values()) <= MOST_OF_ONE else None
