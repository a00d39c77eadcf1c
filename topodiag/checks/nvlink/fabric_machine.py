"""What the machine and single GPUs say of the NVSwitch fabric; fabric.py makes findings of it."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.nvlink.evidence import BOARD_WITHOUT_SWITCH, count_links
from topodiag.checks.shared.comparisons import majority
from topodiag.checks.shared.devices import BOOT_S, cluster, gpu_spec, just_booted, nvlink_count, word
from topodiag.lazy import dataclass
from topodiag.model.busid import NVSWITCH_BUS_ID
from topodiag.model.devices import Gpu
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic

PASSING = ("recovery",)
"""Health fields that pass by themselves: route and access-timeout recovery say that the fabric is at work on it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one GPU's registration, or with the service. Equal faults of several GPUs become one
    finding."""

    severity: Severity
    text: str
    expected: str = ""
    confidence: Confidence = Confidence.HIGH
    waiting: bool = False
    """The GPU has not joined the fabric: what a dead Fabric Manager looks like from the GPU."""
    refused: bool = False
    """The GPU asked to join, and the fabric said no."""
    outlier: bool = False
    """The GPU is in the fabric but not in the NVLink domain of its peers."""


def registers(gpu: Gpu) -> bool:
    """Whether the GPU registers with a fabric at all: A100 and cards without NVSwitch say `not supported`."""
    state = gpu.fabric.state.value
    return state is not None and state != "not_supported"


def faults_of(node: Node, gpu: Gpu, siblings: list[Gpu]) -> list[Fault]:
    """All that is wrong with one GPU that registers with a fabric; `peers` are the GPUs of its node."""
    return list(filter(None, (_registration(node, gpu), _health(gpu), _domain(gpu, siblings))))


def _registration(node: Node, gpu: Gpu) -> Fault | None:
    state, status = gpu.fabric.state.value or "", gpu.fabric.status.value
    words = state.replace("_", " ")
    wanted = "state completed and status success (NCCL and CUDA need both)"
    if state != "completed":
        uptime = node.os.uptime_s.value
        if just_booted(node):
            minutes = f"{(uptime or 0.0) / 60:.0f} minutes after boot"
            text = f"fabric registration is {words}, {minutes}: transient"
            return Fault(Severity.INFO, text, f"{wanted} within {BOOT_S / 60:.0f} minutes of boot", waiting=True)
        if uptime is None and state == "in_progress":
            text = f"fabric registration is {words} (uptime unknown: may be transient)"
            return Fault(Severity.WARNING, text, wanted, Confidence.MEDIUM, waiting=True)
        return Fault(Severity.ERROR, f"fabric registration is {words}", wanted, waiting=True)
    if status and status != "success":
        return Fault(Severity.ERROR, f"fabric registration ended with {status}", wanted, refused=True)
    return None


def _health(gpu: Gpu) -> Fault | None:
    if gpu.fabric.state.value != "completed":
        return None
    parts = []
    if gpu.fabric.health.value in ("unhealthy", "limited"):
        parts.append({"unhealthy": "unhealthy", "limited": "of limited capacity"}[gpu.fabric.health.value])
    if gpu.fabric.bandwidth.value == "degraded":
        parts.append("of degraded bandwidth")
    problems = [part.strip() for part in (gpu.fabric.problems.value or "").split(",") if part.strip()]
    if problems:
        parts.append(f"with {', '.join(problems[:6])}")
    if not parts:
        return None
    passing = all(any(sign in problem.lower() for sign in PASSING) for problem in problems)
    mild = gpu.fabric.health.value != "unhealthy" and gpu.fabric.bandwidth.value != "degraded" and passing
    expected = "health healthy, bandwidth full, no other field set (DCGM fails a GPU for any of them)"
    return Fault(Severity.WARNING if mild else Severity.ERROR, f"the fabric is {' '.join(parts)}", expected)


def _domain(gpu: Gpu, siblings: list[Gpu]) -> Fault | None:
    if gpu.fabric.state.value != "completed" or gpu.fabric.cluster_uuid.value is None:
        return None
    known = [sibling for sibling in siblings if sibling.fabric.cluster_uuid.value is not None]
    common = majority(cluster(sibling) for sibling in known)
    clique = majority(sibling.fabric.clique_id.value for sibling in known if sibling.fabric.clique_id.value is not None)
    own, uuid = gpu.fabric.clique_id.value, cluster(gpu)
    if common is None:
        return None
    if uuid != common:
        text = f"in NVLink cluster {uuid}" if uuid else "in no multi-node NVLink domain, unlike its peers"
        return Fault(Severity.ERROR, text, f"cluster {common}, as its peers", outlier=True)
    if own is not None and clique is not None and own != clique:
        return Fault(Severity.ERROR, f"in NVLink clique {own}", f"clique {clique}, as its peers", outlier=True)
    return None


FABRIC_MANAGER = "nvidia-fabricmanager"
HGX_GPUS = 8
"""GPUs of a full NVSwitch board; an SXM product in this number sits on switches even where these cannot be seen."""
LEAST_TO_SWITCHES = 6
"""NVLinks of the GPU that has fewest to NVSwitches: V100 of DGX-2 and HGX-2."""


FAILED_ALONE = Fault(
    Severity.WARNING,
    "the Fabric Manager has failed: if this machine has NVSwitches, its NVLink fabric is not managed",
    confidence=Confidence.MEDIUM,
)
"""systemd's word without any other evidence of the machine: on one without NVSwitches the service fails as well."""

ABSENT_ALONE = Fault(
    Severity.WARNING,
    "no Fabric Manager runs: if these GPUs sit on NVSwitches, CUDA does not start",
    confidence=Confidence.LOW,
)
"""systemd does not know it, or shows it at rest, beside GPUs whose boards have switches; nothing shows the links."""


def manager_absent(node: Node, gpus: Sequence[Gpu]) -> bool:
    """Whether the Fabric Manager is not there on what may well be a board with NVSwitches, and nothing shows that the
    fabric is up or that the GPUs work without it."""
    state = node.os.services.get(FABRIC_MANAGER, Fact()).value
    if state not in ("not-found", "inactive") or not runs_manager_here(node) or node.nvswitches or just_booted(node):
        return False
    specs = [gpu_spec(gpu) for gpu in gpus]
    boards = all(spec is not None and spec.nvswitch and spec.form == "sxm" for spec in specs)
    if not boards or len(gpus) <= BOARD_WITHOUT_SWITCH or links_to_switch(node):
        return False  # fewer may be what a job was given of a board without switches
    linked = any(count.active is not None for count in count_links(node)) or bool(node.smi_matrix)
    # By the bus alone the GPUs of a guest, whose manager runs on its host, look the same.
    return Topic.GPUS in node.topics and not linked and not any(_works(gpu) for gpu in gpus)


def _works(gpu: Gpu) -> bool:
    """Whether a GPU tells of its fabric, or a program computes on it: CUDA has started."""
    return registers(gpu) or bool(gpu.utilization.value) or gpu.fabric.state.known or bool(gpu.host_copy_gbs.value)


def manager_failed(node: Node) -> bool:
    return node.os.services.get(FABRIC_MANAGER, Fact()).value == "failed"


def not_a_fabric(node: Node, gpus: list[Gpu]) -> str | None:
    """Why there is no fabric to judge on this node, or None when there is one."""
    if not gpus:
        return "no GPU whose fabric could be judged"
    refused = gpus[0].fabric.state.value == "completed" and gpus[0].fabric.status.get("success") != "success"
    single_gpu = len(node.gpus) == 1 and Topic.GPUS in node.topics  # an excerpt shows one of several
    if single_gpu and not cluster(gpus[0]) and not refused and not manager_failed(node):
        return "one GPU: it needs no fabric within the node"
    if any(registers(gpu) for gpu in gpus) or node.nvswitches or links_to_switch(node):
        return None
    products = [gpu_spec(gpu) for gpu in gpus]
    if all(spec is None for spec in products):
        return "two cards with a bridge between them" if bridged_pair(node) else None
    if not any(spec is not None and spec.nvswitch for spec in products):
        return "no GPU of an NVSwitch product"
    if len(node.gpus) >= HGX_GPUS:
        return None
    return "nothing shows NVSwitches: SXM boards with fewer GPUs may join them directly"


def links_to_switch(node: Node) -> bool:
    links = [link for gpu in node.gpus for link in gpu.nvlinks]
    if any(link.remote_type.value == "switch" or link.remote_bus_id.value == NVSWITCH_BUS_ID for link in links):
        return True
    for gpu in node.gpus:
        spec = gpu_spec(gpu)
        row = [nvlink_count(word(node, gpu.label, peer.label).value) or 0 for peer in node.gpus if peer is not gpu]
        if spec is not None and spec.nvlinks and sum(row) > spec.nvlinks:
            return True
    return False


def links_up(node: Node) -> bool:
    counts = [(count.active, count.spec) for count in count_links(node)]
    return bool(counts) and all(up is not None and spec is not None and up >= spec.nvlinks for up, spec in counts)


def runs_manager_here(node: Node) -> bool:
    """Whether the Fabric Manager is this system's own business."""
    if node.os.container.value not in (None, "none"):
        return False
    if any(spec is not None and spec.form == "superchip" for spec in map(gpu_spec, node.gpus)):
        return False
    return not node.is_vm or bool(node.nvswitches)


def bridged_pair(node: Node) -> bool:
    """Two GPUs with fewer links between them than any GPU has to NVSwitches: cards with a bridge."""
    if len(node.gpus) != 2:
        return False
    links = nvlink_count(word(node, node.gpus[0].label, node.gpus[1].label).value)
    return links is not None and links < LEAST_TO_SWITCHES
