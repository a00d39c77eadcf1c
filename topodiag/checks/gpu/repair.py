"""GPUs to be mended: memory that lost data or waits for a repair, and GPUs that ask for a reset or a reboot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.gpu.lost import LOST_WORDS, came_back, losses
from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.node import kernel
from topodiag.hardware.xids import recovery_of
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu
from topodiag.model.events import Event
from topodiag.model.finding import Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.words.own_data import own_data
from topodiag.words.units import grouped, plural

REPLACE = "If it comes again after the reset, run `dcgmi diag -r 3` and ask the vendor for a replacement"


LOST = "the program that used this memory died, and its job with it"

Sign = tuple[Severity, str, Origin | None, str]
"""How bad, in words, where it was read, and what helps."""


SINCE_RESET = "no error since the last reset: whether a repair waits is not in the evidence"


class GpuMemory(NodeCheck, id="GPU002", unless=kernel.no_gpu):
    """GPU002: GPU memory has uncorrectable errors, or waits for a repair

    What it finds
        Errors that ECC could not correct (Xid 48, 94, 95, 140, 171, 172, and the volatile counters), rows or pages that
        wait to be taken out of use or could not be (Xid 63, 64; remapping pending or failed), and GPUs that have used
        up their spare rows.

    Why it matters
        An uncorrectable error kills the program that used the memory; with Xid 95 every program on the GPU. NCCL's
        other ranks then wait until a timeout. Until the reset the bad row stays in use, and the next job meets it.

    Evidence it reads
        The kernel log; `ecc_errors`, `remapped_rows` and `retired_pages` of NVML, `nvidia-smi -q`, and the ECC column
        of nvidia-smi. AMD: the block UMC of `amd-smi metric --ecc-blocks`.

    When it stays silent
        Corrected errors at a normal rate; uncorrectable errors of the past that were remapped (aggregate counters
        alone). Neither counters nor a kernel log in the evidence: unknown. Counters of some GPUs alone, and a few lines
        of a kernel log: unknown.

    How to confirm
        nvidia-smi -q -d ECC,ROW_REMAPPER
        sudo dmesg | grep -E 'Xid.*: (48|63|64|94|95|140|171|172),'

    How to fix
        Reset the GPU when the node is drained: the reset takes the bad row out of use. A remapping that failed, an
        SRAM threshold that was exceeded, or rows that keep failing: ask the vendor for a replacement.

    References
        NVIDIA, GPU Memory Error Management (row remapping, error containment); NVIDIA, Dynamic Page Retirement; Xid
        catalog; DCGM, DCGM_LIMIT_MAX_REMAPPED_ROWS.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        counted = [gpu for gpu in judged.gpus if _counts(gpu, "ecc_")]
        coverage = Coverage(len(counted), len(judged.gpus), "GPUs with memory counters") if judged.gpus else None
        logged = [(group.label, _of_xid(group)) for group in kernel.xid_groups(judged, {"memory"})]
        signs = grouped([*logged, *((gpu.label, sign) for gpu in counted for sign in _of_counters(gpu))])
        clean = "" if counted else "the kernel log shows no memory error"
        unseen = ""
        if not kernel.gpus_were_logged(judged):
            if not counted:
                unseen = f"no memory counters are in the evidence, and {kernel.no_log(judged)}"
            elif len(counted) < len(judged.gpus):
                unseen = f"errors are counted of {len(counted)} of {plural(len(judged.gpus), 'GPU')}"
            clean = "" if all(_counts(gpu, "ecc_aggregate") for gpu in judged.gpus) else SINCE_RESET
        return self.any_of(judged, [_fault(self, judged, *sign) for sign in signs.items()], coverage, clean, unseen)


def _counts(gpu: Gpu, errors: str) -> bool:
    """Whether counters of a repair that waits, or of such errors, were read of a GPU."""
    return any(name.startswith((errors, "remapped_", "retired_")) for name in gpu.counters)


def _of_xid(group: kernel.XidGroup) -> Sign:
    assert group.entry is not None  # noqa: S101 - a family comes from an entry
    severity = {"error": Severity.ERROR, "warning": Severity.WARNING}.get(group.entry.severity, Severity.INFO)
    words = f"Xid {group.code} ({group.entry.name}){kernel.times(group.events)}: {group.entry.means}"
    return severity, words, group.events[0].origin, group.entry.actions[0]


def _of_counters(gpu: Gpu) -> Iterator[Sign]:
    """What the counters of memory say, by memory.toml."""
    for entry in own_data("checks/gpu/memory")["sign"]:
        counters = [gpu.counters[name].latest for name in entry["counters"] if name in gpu.counters]
        amount = sum(counter.get(0) for counter in counters)
        if amount >= entry.get("least", 1):
            words = entry["words"].format(errors=plural(amount, entry.get("counts", "error")), amount=amount)
            fix = own_data("checks/gpu/memory")["fix"].get(entry["fix"], entry["fix"])
            yield Severity[entry.get("severity", "error").upper()], words, counters[0].origin, fix


def _fault(check: NodeCheck, node: Node, label: str, signs: Sequence[Sign]) -> Finding:
    """One GPU whose memory is at fault: the worst sign first."""
    ordered = sorted(signs, key=lambda sign: -sign[0])
    broken = ordered[0][0] is Severity.ERROR
    return check.finding(
        check.where(node, gpus=kernel.where_gpus([label])),
        "bad memory",
        f"{kernel.named(node, label)}: {ordered[0][1]}",
        severity=ordered[0][0],
        observed="; ".join(dict.fromkeys(words for _, words, _, _ in ordered)),
        fix=kernel.with_bus(node, label, dict.fromkeys((*(helps for _, _, _, helps in ordered), REPLACE))),
        cost=LOST if broken else "",
        evidence=(origin for _, _, origin, _ in ordered),
    )


NOTHING = frozenset({"none", "no action", "not needed"})

ACTIONS: dict[str, str] = own_data("checks/advice/node_faults")["recovery"]
"""What to do by a word of the action, the most far-reaching first."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one GPU asks for, in the driver's words, and where it says so."""

    label: str
    action: str
    source: str
    origin: Origin | None


class GpuRecovery(NodeCheck, id="GPU005", unless=kernel.no_gpu):
    """GPU005: a GPU asks for a reset or a reboot

    What it finds
        GPUs whose driver says what must happen before they can be used again: a reset, a drain, a reboot.

    Why it matters
        Until then programs on this GPU fail or hang, and the jobs that the scheduler places there fail one after the
        other. The driver decides the action from what happened: it is safer than guessing from an Xid.

    Evidence it reads
        The recovery action of NVML and `nvidia-smi -q` (before R570: reset required, drain and reset recommended), the
        driver's words "GPU requires reset", and in the kernel log Xid 154 and assertions with NV_ERR_RESET_REQUIRED.

    When it stays silent
        Recovery action None, also after an Xid 154: the last word counts. Memory that waits for a reset is GPU002, a
        GPU that is lost GPU001. No source speaks of recovery: unknown. A few lines of a kernel log: unknown.

    How to confirm
        nvidia-smi -q | grep -iE 'recovery action|reset required|drain and reset'
        sudo dmesg | grep 'Xid.*: 154,'

    How to fix
        Do what the action says, after the node was drained. If the same GPU asks again, run `dcgmi diag -r 3`.

    References
        NVML, nvmlDeviceGpuRecoveryAction_t; NVIDIA, Xid Errors, Xid 154.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        gpus = [gpu for gpu in judged.gpus if gpu.recovery_action.known or gpu.lost.known]
        coverage = Coverage(len(gpus), len(judged.gpus), "GPUs with a recovery action") if judged.gpus else None
        findings = [self._report(judged, request) for request in _asked(judged).values()]
        unseen = f"no source says whether a GPU asks for recovery, and {kernel.no_log(judged)}"
        unseen = "" if gpus or kernel.gpus_were_logged(judged) else unseen
        return self.any_of(judged, findings, coverage, "" if gpus else "the kernel log shows no Xid 154", unseen)

    def _report(self, node: Node, request: Request) -> Finding:
        do = next((words for key, words in ACTIONS.items() if key in request.action), ACTIONS["reset"])
        fix = (*self.steps("find the gpu" if request.label == kernel.MASKED else ""), do, *self.steps("asks again"))
        return self.finding(
            self.where(node, gpus=kernel.where_gpus([request.label])),
            "recovery",
            f"{kernel.named(node, request.label)} asks for recovery: {request.action}",
            observed=f"{request.source}: {request.action}",
            fix=kernel.with_bus(node, request.label, fix),
            evidence=[request],
        )


def _asked(node: Node) -> dict[str, Request]:
    """What the GPUs ask for now, by label: the driver's word of each, else the log's last, else a refusal."""
    asked = {gpu.label: request for gpu in node.gpus if (request := _asked_by_driver(gpu)) is not None}
    for label, (event, action) in _last_words(node).items():
        own = kernel.gpu_at(node, event.bus_id)
        settled = own is not None and own.recovery_action.known
        if label not in asked and action not in NOTHING and not settled:
            at = f" at {kernel.when(event)}" if kernel.when(event) else ""
            asked[label] = Request(label, action, f"Xid 154{at}", event.origin)
    refusing = _refusing(node)
    if refusing is not None and (refusing.label != kernel.MASKED or not asked):
        asked.setdefault(refusing.label, refusing)
    for label, signs in losses(node).items():
        if not came_back(node, label, signs):  # GPU001 says what helps it, and a reset does not reach it
            asked.pop(label, None)
    return asked


def _asked_by_driver(gpu: Gpu) -> Request | None:
    action = (gpu.recovery_action.value or "none").replace("_", " ").lower()
    if action not in NOTHING:
        return Request(gpu.label, action, "recovery action", gpu.recovery_action.origin)
    if LOST_WORDS in (gpu.lost.value or "").lower():
        return Request(gpu.label, "reset", "the driver says it requires reset", gpu.lost.origin)
    return None


def _refusing(node: Node) -> Request | None:
    """The GPU at which the driver last refused work until a reset. The line often does not say which GPU it is; where
    the driver itself says what every GPU asks for, that is newer."""
    if node.gpus and all(gpu.recovery_action.known for gpu in node.gpus):
        return None
    event = next((event for event in reversed(node.events) if event.kind == "gpu-reset"), None)
    own = kernel.gpu_at(node, event.bus_id) if event is not None else None
    if event is None or (own is not None and own.recovery_action.known):
        return None
    at = f" at {kernel.when(event)}" if kernel.when(event) else ""
    source = f"the driver's assertion NV_ERR_RESET_REQUIRED{at}"
    return Request(kernel.label_at(node, event.bus_id), "reset", source, event.origin)


def _last_words(node: Node) -> dict[str, tuple[Event, str]]:
    """The action that the last Xid 154 of each GPU says, in lower case."""
    xids = (event for event in node.events if event.kind == "xid" and event.code == 154)
    last = {kernel.label_at(node, event.bus_id): event for event in xids}
    cut = ("", "a change that is cut off")
    return {label: (event, (recovery_of(event.text) or cut)[1]) for label, event in last.items()}
