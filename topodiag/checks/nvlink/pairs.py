"""NVLink: pairs of GPUs that should be joined by NVLink and talk over PCIe. Link counts are in evidence.py."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from itertools import combinations

from topodiag.checks.interface import Advice, NodeCheck
from topodiag.checks.nvlink import evidence
from topodiag.checks.nvlink.evidence import MESH_GPUS, LinkCount
from topodiag.checks.shared.devices import SMI_TO_PATH, by_xgmi, gpu_spec, nvlink_count, pcie_gbs, word
from topodiag.hardware.amd import PCIE_LANES, AmdGpu, amd_gpu_by_name
from topodiag.hardware.specs import GpuSpec
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.units import few, fold_runs, in_gbs

MAX_LINKS = 36
"""NVLinks that a GPU has at most (NVML_NVLINK_MAX_LINKS of nvml.h 13.3)."""

MESH_PEERS = 4
"""GPUs that each GPU of an 8-GPU hybrid cube-mesh is joined to (DGX-1 with P100 or V100, and its cloud forms)."""

FEWEST_WHOLE = 3
"""GPUs joined to all others from which on a board is taken to join all pairs."""

NO_PAIR = "no pair has NVLink, which MIG would explain, and whether it is on was not seen"

REFUSED = frozenset({"NS", "CNS", "GNS", "TNS", "DR"})
"""Words of `nvidia-smi topo -p2p n` for a pair without P2P over NVLink; `U` (unknown) is no reading."""


@dataclass(frozen=True, slots=True)
class GpuPair:
    """What the evidence says of one pair. `joined` is None when it says nothing."""

    a: Gpu
    b: Gpu
    joined: bool | None
    words: tuple[Fact[str], ...] = ()

    @property
    def ends(self) -> tuple[int, int]:
        return self.a.index, self.b.index

    @property
    def says(self) -> str:
        return "/".join(fact.value for fact in self.words if fact.value)


class PairWithoutNvlink(NodeCheck, id="NVL004"):
    """NVL004: two GPUs that NVLink should join talk over PCIe

    What it finds
        A pair of GPUs of an NVSwitch machine that `topo -m` shows as PIX, PXB, PHB, NODE or SYS, or for which the
        driver refuses peer-to-peer over NVLink; a pair of the 8-GPU mesh that lost its links. On AMD's platforms whose
        GPUs are all joined by xGMI (MI300X to MI355X): a pair over PCIe or over other GPUs, or a link that is down.

    Why it matters
        The pair falls from NVLink (18 x 20.6 = 370.8 GB/s on H100) to PCIe (48 GB/s for Gen5 x16), or to shared
        memory where NCCL does not allow P2P over that distance. NCCL's graph search needs equal GPUs: one GPU
        without its NVLink edges makes it fall back to rings over PCIe for all of them.

    Evidence it reads
        `nvidia-smi topo -m`, `nvidia-smi topo -p2p n` or NVML's P2P status, link counts where there are any, the
        datasheet (which products are joined by NVSwitches). A job's log: `Unable to get RemoteDeviceType for NVLink`
        (NCCL 2.31 and later), after which NCCL leaves the link out. AMD: `amd-smi topology`, `amd-smi xgmi`,
        `rocm-smi --showtopo`, /sys/class/kfd/kfd/topology.

    When it stays silent
        PCIe cards, bridges and meshes, which never join all pairs (a V100 mesh is held to its own pattern: four peers
        per GPU). MIG; no pair has NVLink and whether MIG is on was not seen: unknown. A GPU that has no link up at
        all, or whose fabric is not ready, is the subject of NVL001 and NVL005 and is not reported a second time.
        AMD: cards with bridges (MI210) and MI250X boards, whose pairs differ by design, and virtual functions (N/A).
        Unknown products are judged only when all other GPUs are joined to each other, or when a GPU shows more links to
        its peers than any GPU has, as only a switch makes it. No matrix and no P2P status: unknown.

    How to confirm
        nvidia-smi topo -m                    NVn for every pair of GPUs
        nvidia-smi topo -p2p n                OK for every pair; DR means switched off by a registry key
        nvidia-smi -q | grep -A6 Fabric       State Completed, Status Success on Hopper and later

    How to fix
        With DR: remove the key (`RegistryDwords` in /etc/modprobe.d, NVreg_NvLinkDisable) and reload the driver.
        Otherwise restart the Fabric Manager with no job on the node; then reset the GPUs together; then reboot. In a
        virtual machine ask the host's owner whether the partition of this guest is active.

    References
        NCCL src/graph/paths.cc (P2P level) and src/graph/topo.h v2.30; nvidia-smi topo legend; NVIDIA Fabric Manager
        user guide, shared NVSwitch partitions.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        asked = [gpu for gpu in judged.gpus if not evidence.no_question(gpu)]
        specs = [gpu_spec(gpu) for gpu in asked]
        if len(asked) < 2:
            return self.not_applicable(judged, "fewer than two GPUs that NVLink could join")
        if all(spec is not None and spec.bridged for spec in specs):
            return self.not_applicable(judged, "bridges join only the pairs that they were fitted to")
        pairs = [_see(judged, a, b) for a, b in combinations(asked, 2)]
        seen = [pair for pair in pairs if pair.joined is not None]
        coverage = Coverage(len(seen), len(pairs), "pairs of GPUs")
        if not seen:
            return self.unknown(judged, "neither `topo -m` nor a P2P status over NVLink was seen")
        if not any(pair.joined for pair in seen) and evidence.maybe_mig(judged):
            return self.unknown(judged, NO_PAIR)
        lost, inferred = _lost(asked, specs, seen)
        untold, texts = _parted(judged, lost)
        findings = [self._report(judged, asked, untold, inferred)] if untold else []
        why = f"{len(texts)} pairs without NVLink, explained by {texts[0]}" if texts else inferred or ""
        unread = len(pairs) - len(seen)
        unseen = f"{unread} of {len(pairs)} pairs were not seen" if unread and not texts else ""
        return self.any_of(judged, findings, coverage, why, unseen)

    def _report(self, node: Node, asked: Sequence[Gpu], lost: Sequence[GpuPair], inferred: str | None) -> Finding:
        """Pairs that NVLink should join and does not; `inferred` says how that is known where no datasheet says it."""
        culprits = _culprits(asked, lost)
        guessed = inferred is not None and not _is_sure(asked, lost)
        confidence = Confidence.MEDIUM if guessed or node.is_vm else Confidence.HIGH
        mesh = inferred is not None and gpu_spec(lost[0].a) is not None
        severity = Severity.WARNING if mesh or node.is_vm else Severity.ERROR
        says = ", ".join(sorted({pair.says for pair in lost})[:6])
        spec = gpu_spec(lost[0].a)
        refused = any((fact.value or "").strip().upper() == "DR" for pair in lost for fact in pair.words)
        return self.finding(
            self.where(
                node,
                gpus=[gpu.label for gpu in culprits or _ends(asked, lost)],
                links=[f"{pair.a.label} to {pair.b.label}" for pair in lost[:64]],
            ),
            Advice(severity, confidence),
            _message(asked, lost, culprits),
            observed=f"{says} between the pairs {few([f'{pair.a.label}-{pair.b.label}' for pair in lost], 4)}",
            expected=inferred or "NVLink between all pairs",
            fix=self.steps("registry key" if refused else "", "guest" if node.is_vm else "", "pairs apart"),
            cost=_cost(spec, amd_gpu_by_name(lost[0].a.name.get(""))),
            evidence=[fact for pair in lost for fact in pair.words],
        )


def _parted(node: Node, lost: Sequence[GpuPair]) -> tuple[list[GpuPair], list[str]]:
    """The pairs whose loss no other check explains, and what explains the others."""
    counts = {count.gpu.index: count for count in evidence.count_links(node)}
    reasons = [(pair, _explained(pair, counts)) for pair in lost]
    return [pair for pair, why in reasons if not why], [why for _, why in reasons if why]


def _see(node: Node, a: Gpu, b: Gpu) -> GpuPair:
    link_word = word(node, a.label, b.label)
    table = node.p2p.get("nvlink", {})
    status = table.get((a.label, b.label)) or table.get((b.label, a.label)) or Fact()
    way, p2p = ((fact.value or "").strip().upper() for fact in (link_word, status))
    joined = by_xgmi(link_word.value)
    if joined is None and (p2p in REFUSED or way in SMI_TO_PATH):
        joined = False
    elif joined is None and (nvlink_count(link_word.value) or p2p == "OK"):
        joined = True
    return GpuPair(a, b, joined, tuple(fact for fact in (link_word, status) if fact.value))


def _lost(asked: list[Gpu], specs: list[GpuSpec | None], seen: list[GpuPair]) -> tuple[list[GpuPair], str | None]:
    """The pairs that should be joined and are not, and how that was inferred where no datasheet says it."""
    gpu_pairs = [pair for pair in seen if not pair.joined]
    if not gpu_pairs:
        return [], None
    if any(by_xgmi(fact.value) is not None for pair in seen for fact in pair.words):
        return _lost_of_xgmi(asked, seen, gpu_pairs)
    switched = {gpu.index for gpu, spec in zip(asked, specs, strict=True) if spec is not None and spec.nvswitch}
    if by_product := [pair for pair in gpu_pairs if switched.issuperset(pair.ends)]:
        return by_product, None
    if all(spec is not None and not spec.bridged and not spec.nvswitch for spec in specs):
        return _lost_of_mesh(asked, seen), f"each GPU of this mesh is joined to {MESH_PEERS} others"
    if any(spec is not None for spec in specs):
        return [], None
    return _lost_of_unknown(asked, seen, gpu_pairs)


def _lost_of_xgmi(asked: list[Gpu], seen: list[GpuPair], gpu_pairs: list[GpuPair]) -> tuple[list[GpuPair], str | None]:
    """Pairs of AMD's GPUs that a link should join: where the product has one to each of the GPUs that are there, or
    half of the GPUs show that their board has. Rings, chords and pairs of dies join some pairs only, by design. A link
    that is there and down is lost whatever the board."""
    down = [pair for pair in gpu_pairs if pair.says.endswith((" down", " disabled"))]
    if (spec := evidence.whole_mesh(asked)) is not None:
        return gpu_pairs, f"one xGMI link to each of the {spec.links} peers of {spec.name} ({spec.source})"
    whole = sum(count == len(asked) - 1 for count in _peers(seen).values())
    if amd_gpu_by_name(asked[0].name.get("")) is None and whole >= FEWEST_WHOLE and whole * 2 >= len(asked):
        return gpu_pairs, f"xGMI between all pairs: {whole} GPUs are joined to each of the others"
    return down, "the link of the pair up" if down else None


def _is_sure(asked: Sequence[Gpu], lost: Sequence[GpuPair]) -> bool:
    """Whether AMD's data sheet says of the pairs that a link joins them, or the driver that the link is down."""
    return evidence.whole_mesh(asked) is not None or all(pair.says.endswith((" down", " disabled")) for pair in lost)


def _lost_of_mesh(asked: list[Gpu], seen: list[GpuPair]) -> list[GpuPair]:
    """Pairs of a hybrid mesh between GPUs that have fewer peers than the pattern, while most GPUs have them all."""
    if len(asked) != MESH_GPUS or len(seen) != MESH_GPUS * (MESH_GPUS - 1) // 2:
        return []
    joined = _peers(seen)
    short = {gpu.index for gpu in asked if joined[gpu.index] < MESH_PEERS}
    if len(short) * 2 >= len(asked) or any(count > MESH_PEERS for count in joined.values()):
        return []
    half = MESH_GPUS // 2
    ends = [(pair, *pair.ends) for pair in seen if not pair.joined and short.issuperset(pair.ends)]
    return [pair for pair, a, b in ends if a // half == b // half or abs(a - b) == half]


def _peers(pairs: Sequence[GpuPair]) -> Tally[int]:
    """How many peers each GPU is joined to, by its index."""
    return Tally(index for pair in pairs if pair.joined for index in pair.ends)


def _lost_of_unknown(asked: list[Gpu], seen: list[GpuPair], lacking: list[GpuPair]) -> tuple[list[GpuPair], str | None]:
    """GPUs of an unknown product that are not joined to a majority that is joined all to all, or to one that must hang
    on a switch: it shows more links to its peers together than any GPU has."""
    for gpu in asked:
        mine = [pair for pair in seen if gpu.index in pair.ends and pair.words]
        links = sum(nvlink_count(pair.words[0].value) or 0 for pair in mine)
        if links > MAX_LINKS:
            return lacking, f"NVLink between all pairs: {gpu.label} shows {links} links, so that a switch joins them"
    numbers = {gpu.index for gpu in _culprits(asked, lacking)}
    rest = len(asked) - len(numbers)
    among = [pair.joined for pair in seen if numbers.isdisjoint(pair.ends)]
    if not numbers or rest < 3 or rest * 2 <= len(asked) or not among or not all(among):
        return [], None
    return lacking, f"NVLink between all pairs: the other {rest} GPUs are joined to each other"


def _culprits(asked: Sequence[Gpu], lost: Sequence[GpuPair]) -> list[Gpu]:
    """The fewest GPUs that all the lost pairs have in common, when they lost every peer; else none."""
    left = list(lost)
    gpus: list[Gpu] = []
    while left:
        tally = Tally(index for pair in left for index in pair.ends)
        worst = max(asked, key=lambda gpu: tally[gpu.index])
        if tally[worst.index] < len(asked) - 1 - len(gpus):
            return []
        gpus.append(worst)
        left = [pair for pair in left if worst.index not in pair.ends]
    return gpus if len(gpus) < len(asked) - 1 else []


def _ends(asked: Sequence[Gpu], lost: Sequence[GpuPair]) -> list[Gpu]:
    """The GPUs of the lost pairs."""
    ends = {index for pair in lost for index in pair.ends}
    return [gpu for gpu in asked if gpu.index in ends]


def _explained(pair: GpuPair, counts: dict[int, LinkCount]) -> str:
    """The check that already names the cause of a pair's loss, or nothing."""
    for gpu in (pair.a, pair.b):
        state, status = gpu.fabric.state.value, gpu.fabric.status.value
        if state in ("not_started", "in_progress") or status not in (None, "", "success"):
            return f"the fabric of {gpu.label} (NVL005)"
        active, spec = counts[gpu.index].active, counts[gpu.index].spec
        if active == 0:
            return f"{gpu.label}, which has no link up (NVL001)"
        if active and spec and not spec.nvswitch and active < spec.nvlinks:
            return f"{gpu.label}, which has links down (NVL001)"
    return ""


def _message(asked: Sequence[Gpu], lost: Sequence[GpuPair], culprits: Sequence[Gpu]) -> str:
    if culprits:
        verb = "reaches its" if len(culprits) == 1 else "reach their"
        return f"{fold_runs([gpu.label for gpu in culprits])} {verb} {len(asked) - 1} peers without NVLink"
    if len(lost) == len(asked) * (len(asked) - 1) // 2:
        return f"no pair of the {len(asked)} GPUs talks over NVLink"
    if len(lost) == 1:
        return f"{lost[0].a.label} and {lost[0].b.label} talk without NVLink"
    return f"{len(lost)} pairs of GPUs talk without NVLink"


def _cost(spec: GpuSpec | None, amd: AmdGpu | None) -> Cost:
    if amd is not None:
        way = f"PCIe Gen{amd.pcie_gen} x{PCIE_LANES}, which GPU, NIC and host share"
        return Cost(
            text=f"the pair falls from {in_gbs(amd.rccl_gbs)} of xGMI to {way}; every ring of the node meets it"
        )
    pcie = pcie_gbs(spec)
    if spec is None or pcie is None or not spec.nvlinks:
        return Cost(text="the pair falls from NVLink to PCIe, and NCCL lays every ring of the node over it")
    fast = spec.nvlinks * spec.nvlink_nccl_gbs
    text = f"{in_gbs(fast)} over NVLink, at most {in_gbs(pcie)} over PCIe Gen{spec.pcie_gen} x{spec.pcie_width}"
    return Cost(max(fast - pcie, 0.0), max(1 - pcie / fast, 0.0), f"{text}; NCCL's rings take the narrowest pair")
