"""NVLinks and xGMI in a capture: links that are down, too few, or below their rate, and pairs of AMD's GPUs whose
copies are below those of the others."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from topodiag.checks.interface import Advice, NodeCheck
from topodiag.checks.nvlink import evidence
from topodiag.checks.nvlink.evidence import Expectation, LinkCount
from topodiag.checks.shared.comparisons import Far, far, majority, tallied
from topodiag.checks.shared.devices import by_xgmi, gpu_spec, word
from topodiag.checks.shared.prices import missing_nvlinks, slow_nvlinks
from topodiag.hardware.amd import PCIE_LANES, amd_gpu_by_name
from topodiag.hardware.catalog import pcie_line_gbs
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.maker import dialect_of
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.dialect import AMD
from topodiag.words.units import few, fold_runs, grouped, in_gbs, percent, plural


class FewerNvlinks(NodeCheck, id="NVL001"):
    """NVL001: a GPU has fewer active NVLinks than its product or its peers

    What it finds
        A GPU whose NVLinks are not all up: single links that did not train, one NVSwitch out of use (every GPU
        short by the same few links), or no link at all.

    Why it matters
        NCCL builds its channels through the narrowest GPU, so one GPU with 12 of 18 links takes the whole node from
        18 x 20.6 = 370.8 GB/s to 12 x 20.6 = 247.2 GB/s per direction (NCCL's rate per NVLink 4 link). With no link
        left the node falls back to PCIe or shared memory: 48 GB/s or less instead of 370.8 GB/s.

    Evidence it reads
        Link states from NVML or `nvidia-smi nvlink -s`, or the sentence `all links are inactive`. Without these, the
        counts NVn in `nvidia-smi topo -m`, with medium confidence: through NVSwitches a pair shows the lesser of its
        two ends, on boards that join GPUs directly a row adds up. The expected number of links comes from the
        datasheet. Links of AMD's GPUs (xGMI) are judged pair by pair, by NVL004.

    When it stays silent
        The product has no NVLink. The links come by bridges (H100 NVL uses 12 of 18, a card without a bridge none):
        then only a GPU that has some links and fewer than most peers is reported, or the cards of an NVL product
        without any while at least as many peers are bridged. Parts of a V100 mesh in a
        virtual machine, where all GPUs are short alike; on bare metal, where peers differ and none has all links:
        unknown. MIG is on, because the driver then reads links as down
        (information, where no link is up and nothing says whether it is on). One GPU alone with no link up, since it
        has no peer. Within 10 minutes of boot, or with a fabric in progress and no uptime, links may still be training:
        unknown. The links could not be read: unknown.

    How to confirm
        nvidia-smi nvlink -s -i N             which links are inactive
        nvidia-smi topo -m                    the GPU's row shows a smaller NVn
        dmesg | grep -iE 'xid|sxid'           Xid 74 (up to Hopper), 144 to 150 (Blackwell): the link and the reason
        grep -iE 'error|degraded' /var/log/fabricmanager.log
                                              a switch or link that Fabric Manager took out of use

    How to fix
        Stop the jobs on the node, reset all GPUs of the board together (`nvidia-smi --gpu-reset`), restart
        the Fabric Manager, and look again. If the same links stay down, power-cycle the node: a warm reset does not
        retrain all links. If they stay down after that, take the node out of service and request a new GPU or
        baseboard. Attach the output of `nvidia-bug-report.sh`.

    References
        NCCL src/graph/topo.h and src/graph/xml.cc (which links NCCL counts), v2.30; NVIDIA Fabric Manager user guide,
        degraded mode; NVIDIA Xid catalogue.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        if (joined := evidence.all_joined_by_xgmi(judged)) is not None:
            why = f"each of {len(judged.gpus)} GPUs has an xGMI link to each of the others"
            return self.clean(judged, why) if joined else self.not_applicable(judged, "NVL004 judges xGMI pair by pair")
        counts = evidence.count_links(judged)
        asked = [count for count in counts if not count.skipped]
        if not asked:
            return self.not_applicable(judged, counts[0].why if counts else "no GPU in the evidence")
        if judged.gpus[-1].index == 0 and asked[0].active == 0:
            return self.not_applicable(judged, "one GPU and no link up: it has no peer to be joined to")
        seen = [count for count in asked if count.active is not None]
        none_up = seen and not any(count.active or evidence.training(judged, count.gpu) for count in seen)
        if none_up and evidence.maybe_mig(judged):
            return self.any_of(judged, [self._none_up(judged, seen)])
        groups, unseen = _sorted_by_loss(judged, asked, counts)
        coverage = Coverage(len(asked) - sum(len(labels) for labels in unseen.values()), len(asked), "GPUs")
        findings = [self._report(judged, group, wanted) for (_, wanted), group in groups.items()]
        why = "; ".join(f"{fold_runs(labels)}: {reason}" for reason, labels in unseen.items())
        bridged = "the links of this product come by bridges, and no GPU has fewer than its peers"
        return self.any_of(judged, findings, coverage, bridged if all(map(_is_bridged, asked)) else "", why)

    def _none_up(self, node: Node, seen: Sequence[LinkCount]) -> Finding:
        """GPUs without a link, of which MIG may be the reason."""
        labels = [count.gpu.label for count in seen]
        return self.finding(
            self.where(node, gpus=labels),
            "no link, or MIG",
            f"no NVLink of {fold_runs(labels)} is active, which MIG would explain: whether it is on was not seen",
            observed="0 links up",
            evidence=[fact for count in seen for fact in count.evidence],
        )

    def _report(self, node: Node, counts: Sequence[LinkCount], wanted: Expectation) -> Finding:
        """GPUs with the same number of links up, fewer than expected."""
        active, want, first = counts[0].active or 0, wanted.links, counts[0]
        all_alike = len(counts) == len(node.gpus) > 1
        severity, confidence = _how_bad(counts, wanted, all_alike)
        labels = [count.gpu.label for count in counts]
        have = "no active NVLink" if active == 0 else f"{active} of {want} NVLinks active"
        verb = "has" if len(counts) == 1 else "have"
        down = [f"{count.gpu.label} link {index}" for count in counts for index in count.down if _wired(count, want)]
        hint = ", all alike: an NVSwitch may be out of use" if all_alike and active else ""
        # One line of each GPU before the second of any: the first lines show the most.
        ranked = zip_longest(*(count.evidence for count in counts))
        board = "" if not all_alike else "switch out of use" if active else "fabric manager first"
        return self.finding(
            self.where(node, gpus=labels, links=down),
            Advice(severity, confidence),
            f"{fold_runs(labels)} {verb} {have}{hint}",
            observed=f"{plural(active, 'link')} up" + (f"; down: {_spell_links(counts, want)}" if down else ""),
            expected=_expected(first, wanted),
            fix=self.steps("bridges" if _is_bridged(first) else board, "links down"),
            cost=_cost(first, active, want),
            evidence=[fact for facts in ranked for fact in facts if fact is not None],
        )


def _sorted_by_loss(
    node: Node, asked: list[LinkCount], counts: list[LinkCount]
) -> tuple[dict[tuple[int, Expectation], list[LinkCount]], dict[str, list[str]]]:
    """GPUs with fewer links than expected, by count and expectation; and those that cannot be judged, by reason."""
    groups: dict[tuple[int, Expectation], list[LinkCount]] = defaultdict(list)
    unseen: dict[str, list[str]] = defaultdict(list)
    for count in asked:
        label = count.gpu.label
        wanted = evidence.expect(node, count, counts)
        if count.active is None:
            unseen[count.why].append(label)
        elif wanted is not None and count.active < wanted.links:
            if evidence.training(node, count.gpu):
                unseen["its links may still be training, minutes after boot"].append(label)
            else:
                groups[count.active, wanted].append(count)
        elif wanted is None and count.spec is None and majority(c.active for c in asked) is None:
            unseen["its product is unknown and it has no peers to compare with"].append(label)
        elif wanted is None and _odd_mesh(node, count, asked):
            unseen["links are down, on its peers others are, and none has all that its product has"].append(label)
    return groups, unseen


def _odd_mesh(node: Node, count: LinkCount, asked: list[LinkCount]) -> bool:
    """Whether links are down on a board that joins GPUs directly, and the peers do not agree on how many it uses."""
    direct = count.spec is not None and not count.spec.bridged and not count.spec.nvswitch
    return direct and bool(count.down) and not node.is_vm and majority(other.active for other in asked) is None


def _is_bridged(count: LinkCount) -> bool:
    return count.spec is not None and count.spec.bridged


def _how_bad(counts: Sequence[LinkCount], wanted: Expectation, all_alike: bool) -> tuple[Severity, Confidence]:
    confidence = min([wanted.confidence, *(count.confidence for count in counts)])
    guessed = confidence < Confidence.HIGH and (counts[0].spec is None or counts[0].spec.bridged)
    if (counts[0].active or _is_bridged(counts[0])) and (all_alike or guessed):
        return Severity.WARNING, min(confidence, Confidence.MEDIUM)
    return Severity.ERROR, confidence


def _wired(count: LinkCount, want: int) -> bool:
    """Whether inactive links are the missing ones; a product with spare links does not say which should be up."""
    return len(count.down) == want - (count.active or 0)


def _spell_links(group: Sequence[LinkCount], want: int) -> str:
    links = {count.gpu.label: [f"link {index}" for index in count.down] for count in group if _wired(count, want)}
    return few([f"{label} {fold_runs(down)}" for label, down in links.items() if down], 4, "; ")


def _expected(count: LinkCount, wanted: Expectation) -> str:
    rate = evidence.gbs_per_link(count)
    text = f"{wanted.links} links: {wanted.derivation}"
    if rate:
        sm = f"sm{count.spec.sm if count.spec else count.gpu.sm.value}"
        text += f"; {wanted.links} links x {in_gbs(rate)} = {in_gbs(wanted.links * rate)}"
        text += f" (NCCL's rate per link for {sm}, topo.h v2.30)"
    return text


def _cost(count: LinkCount, active: int, want: int) -> Cost:
    share = (want - active) / want
    rate = evidence.gbs_per_link(count)
    if rate is None:
        text = f"{percent(share)} of this GPU's NVLink bandwidth, and the whole node's rings with it"
        return Cost(share=share, text=text)
    lost = missing_nvlinks(active, want, rate)
    text = (
        f"{plural(want - active, 'link')} x {in_gbs(rate)} = {in_gbs(lost)} per direction; every NCCL channel passes"
        " the narrowest GPU, so the whole node loses it"
    )
    return Cost(lost, share, text)


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
        return self.finding(
            self.where(node, gpus=labels, links=[link.label for link in members]),
            self.advice("slow link", want=in_gbs(want), source=source),
            f"{fold_runs(labels)}: {plural(len(members), 'NVLink')} at {in_gbs(rate)} instead of {in_gbs(want)}",
            sure=by_product and not gpu.xgmi_gbs.known,
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
