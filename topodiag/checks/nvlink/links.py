"""NVLinks that are down or too few, in a capture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest

from topodiag.checks.interface import Advice, NodeCheck
from topodiag.checks.nvlink import evidence
from topodiag.checks.nvlink.evidence import Expectation, LinkCount
from topodiag.checks.shared.comparisons import majority
from topodiag.checks.shared.prices import missing_nvlinks
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.words.units import few, fold_runs, in_gbs, percent, plural


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
