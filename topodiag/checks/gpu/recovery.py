"""GPUs that ask for a reset, a reboot or a drain before they can be used again."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.gpu.lost import LOST_WORDS, came_back, losses
from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.node import kernel
from topodiag.hardware.xids import recovery_of
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu
from topodiag.model.events import Event
from topodiag.model.finding import Coverage, Finding, Outcome
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.words.own_data import own_data

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
