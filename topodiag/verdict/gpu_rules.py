"""GPUs, NVLink and PCIe: what follows where one of them is lost or degraded."""

from __future__ import annotations

from topodiag.lazy import regex
from topodiag.model.finding import Finding, Severity
from topodiag.verdict.interface import Reach, Rule
from topodiag.verdict.job_errors import JOB_FAILS, error_is
from topodiag.verdict.scene import Scene

_OF_GPU_ERROR = frozenset({"cuda", "memory", "other", "watchdog", "timeout", "ib completion", "connect"})
"""Kinds of first errors that a job shows whose GPU failed: of the GPU's own rank, or of those that waited for it."""


class LostGpuOnItsNode(Rule):
    """A lost GPU takes its NVLinks along, and often what shares its PCIe switch: its node shows fewer links, fewer
    NICs, fewer ranks. `nvidia-smi -L` on the node settles it."""

    causes = ("GPU001",)
    leads_to = ("NVL001", "NVL003", "NVL004", "NIC005", "NIC001", "PCI001", "PCI003", "NUM001", "TOP002", "TOP004",
                "JOB004", "JOB010", "GPU005", "GPU003", "HST002")  # fmt: skip
    because = "a GPU that left the bus takes down its links and what shares its PCIe switch"
    reach = Reach.NODE

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return not _starts_no_gpu(other, cause)


class FirmwareStartsNoGpu(Rule):
    """The driver starts no GPU whose own processor (GSP) does not boot: nvidia-smi then has none to show."""

    causes = ("GPU003",)
    leads_to = ("GPU001",)
    because = "the driver does not start a GPU whose own processor does not boot, and nvidia-smi shows none"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return _starts_no_gpu(cause, other)


def _starts_no_gpu(firmware: Finding, missing: Finding) -> bool:
    """Whether one tells of a GPU's processor that does not answer, the other that nvidia-smi shows no GPU at all."""
    return firmware.id == "GPU003" and "(GSP)" in firmware.message and "nvidia-smi finds no GPU" in missing.message


class GpuAsksForReset(Rule):
    """A GPU that had an uncorrectable error or a failed link asks for a reset or a reboot: the request is what the
    driver says of the same error."""

    causes = ("GPU002", "GPU003", "NVL003")
    leads_to = ("GPU005",)
    because = "the driver asks for the reset because of this error"
    reach = Reach.NODE


class LinksThatTheKernelReported(Rule):
    """NVLinks of a GPU that are down, and the Xid that reported them: one fault, of which the links are the state with
    its price, and the Xid is the time at which it began."""

    causes = ("NVL001",)
    leads_to = ("GPU003",)
    because = "the kernel reported the links of this GPU when they failed"
    reach = Reach.NODE

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if _ends_a_job(scene):  # then the failure is what its user asks for, and the links are its trace
            return False
        return "nvlink" in f"{other.message} {other.observed}".lower() and bool(_gpus(cause) & _gpus(other))


def _ends_a_job(scene: Scene) -> bool:
    """Whether a job of this case died of an NVLink error, by its own first error."""
    errors = scene.first_errors.values()
    return any(event is not None and "nvlink error" in event.text.lower() for event in errors)


def _gpus(finding: Finding) -> frozenset[str]:
    return frozenset(label.split(" ")[0] for label in (*finding.where.gpus, *finding.where.links))


class GpuErrorEndsLinks(Rule):
    """Xid 74 and 144 to 150 report an NVLink that failed: its counters rise and it is inactive afterwards."""

    causes = ("GPU003",)
    leads_to = ("NVL001", "NVL003", "NVL004", "TOP004", "NVL005")
    because = "the driver reports a failed link of this GPU"
    reach = Reach.NODE

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        text = f"{cause.message} {cause.observed}".lower()
        return "nvlink" in text or "sxid" in text or "nvswitch" in text


class GpuFaultEndsJob(Rule):
    """A GPU that fails ends its rank or makes it wait for ever; all other ranks then report closed connections and
    timeouts. The time of the Xid and of the first NCCL line on the same host settle it."""

    causes = ("GPU001", "GPU002", "GPU003")
    leads_to = ("JOB005", "JOB006", "JOB009", "NET008", *JOB_FAILS)
    because = "the rank of a GPU that failed ends or never answers, and the others report what follows"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return other.id != "JOB005" or error_is(other, scene, *_OF_GPU_ERROR)


class GpuFaultHangsTools(Rule):
    """A GPU that fell off the bus or failed leaves the driver waiting for it: nvidia-smi and NVML never answer."""

    causes = ("GPU001", "GPU002", "GPU003", "GPU005")
    leads_to = ("HST005",)
    because = "the driver waits for the GPU that failed, and whoever asks the driver waits as well"
    reach = Reach.NODE

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return cause.severity > Severity.INFO and ("nvidia" in other.message or "nvml" in other.message)


class HungDriverHoldsJob(Rule):
    """A rank asks the driver at its start: on a node whose driver hangs it never comes up, and the others wait."""

    causes = ("HST005",)
    leads_to = ("JOB005", "JOB006", *JOB_FAILS)
    because = "a rank that asks a driver or a device that hangs never answers, and the others wait for it"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        stuck = cause.severity is Severity.ERROR
        return stuck and (other.id != "JOB005" or error_is(other, scene, "watchdog", "timeout", "connect"))


class StorageHoldsJob(Rule):
    """A rank that waits for storage does not come to the next collective: the watchdogs of the others end the job."""

    causes = ("HST006",)
    leads_to = ("JOB005", "JOB006", "JOB008", "JOB009", *JOB_FAILS)
    because = "a rank that waits for storage does not come to the next collective, and the others wait for it"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if cause.severity is Severity.INFO:
            return False
        if other.id == "JOB009":  # the end of the rank whose write the storage refused, not any other end
            ranks = set(cause.where.ranks)
            return "exception" in other.message and (not other.where.ranks or not ranks.isdisjoint(other.where.ranks))
        return other.id != "JOB005" or error_is(other, scene, "watchdog", "timeout", "other", "memory")


class FabricNotReady(Rule):
    """Without a fabric that is ready no NVLink of the node carries data: links inactive on all GPUs, CUDA error 802,
    NVLink SHARP that cannot be bound, P2P that falls back. `nvidia-smi -q | grep -A4 Fabric` settles it."""

    causes = ("NVL005",)
    leads_to = ("NVL001", "NVL002", "NVL004", "P2P001", "TOP004", "NET006")
    because = "NVLinks carry no data until the fabric is ready"
    reach = Reach.NODE


class DomainsApart(Rule):
    """Trays in different NVLink domains, or in none: NCCL joins no NVLink between them and goes over the NICs, with
    IMEX or without. `nvidia-smi -q | grep -A6 Fabric` on each tray settles it."""

    causes = ("NVL005",)
    leads_to = ("BEN001", "JOB015", "BEN002", "NET006", "HST002")
    because = "between NVLink domains NCCL goes over the NICs"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return "NVLink domain" in cause.message and (other.id != "HST002" or "IMEX" in other.message)


_OPERATOR_POD = regex(
    r"\b(?:nvidia-(?:cuda-|operator-)?validator|(?:nvidia|dra-driver-nvidia|gpu)-[\w-]{0,60}(?:plugin|exporter)\b)"
    r"\S{0,80} .{0,60}CrashLoopBackOff"
)
"""What NVIDIA's operator starts on each node to see whether CUDA starts there, and the plug-ins that ask each GPU for
its fabric."""


class FabricFailsJob(Rule):
    """CUDA refuses to start (error 802) or NVLink SHARP cannot be bound while the NVSwitch fabric is not ready."""

    causes = ("NVL005",)
    leads_to = ("JOB005", "JOB006", "JOB009", *JOB_FAILS)
    because = "CUDA and NVLink SHARP do not start until the fabric is ready"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if other.id == "JOB009":  # a program that names no reason, or CUDA's, and no signal or limit of another kind
            if _OPERATOR_POD.search(other.observed) is not None:
                return True
            if not scene.same_node(cause, other):
                return False
            return "802" in other.observed or "error code" in other.message or _is_later_exception(cause, other)
        return other.id != "JOB005" or error_is(other, scene, "cuda", "other", "watchdog", "timeout")


def _is_later_exception(cause: Finding, other: Finding) -> bool:
    """Whether a program ends with an exception below the line in which CUDA refuses to start: whatever it says, the
    program has no GPU."""
    return "exception" in other.message and any(
        first.source == later.source and 0 < (first.line or 0) < (later.line or 0)
        for first in cause.evidence
        for later in other.evidence
    )


class FewerLinksOnItsNode(Rule):
    """A GPU with fewer or slower NVLinks than its peers shows in NCCL's topology as missing or slow edges."""

    causes = ("NVL001", "NVL002", "NVL003")
    leads_to = ("TOP004", "NVL004", "NVL003", "TOP002", "P2P001")
    because = "NCCL sees the links that this GPU lacks"
    reach = Reach.NODE


class FaultMetByTest(Rule):
    """A test of copies, or of DCGM, meets whatever slows the GPU: what the machine itself shows of it is the cause."""

    causes = (
        "GPU001",
        "GPU002",
        "GPU003",
        "GPU004",
        "NVL001",
        "NVL002",
        "NVL003",
        "NVL004",
        "PCI001",
        "PCI002",
        "PCI003",
    )
    leads_to = ("GPU006",)
    because = "the test met this fault of the GPU"
    reach = Reach.NODE

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        return bool(_gpus(cause) & _gpus(other))


class SlowGpuForAll(Rule):
    """Every ring passes the GPU that a test found slow: the runs on its node are low."""

    causes = ("GPU006",)
    leads_to = ("BEN001", "JOB015", "BEN003", "BEN005")
    because = "every ring passes the GPU that the test found slow"


class FewerLinksForAll(Rule):
    """NCCL's search takes one channel count for all ranks, the least that any of them found: a GPU with fewer links
    lowers the whole job. `topodiag topo predict` of the degraded node shows the same count."""

    causes = ("NVL001", "NVL002", "NVL004", "TOP004")
    leads_to = ("NET006", "NET007", "BEN001", "JOB015", "BEN003", "BEN005")
    because = "all ranks take the channels that the most degraded GPU allows"


class SlowPcieOnItsPath(Rule):
    """A PCIe link below its capability limits all that passes it: the NIC or GPU behind it, and the paths that NCCL
    chooses by bandwidth."""

    causes = ("PCI001", "PCI002", "PCI003")
    leads_to = ("NET004", "GDR002", "NIC002", "NET003", "PCI002")
    because = "the traffic of this GPU or NIC passes the degraded PCIe link"
    reach = Reach.NODE


class SlowPcieForAll(Rule):
    """Every collective waits for the rank behind the degraded PCIe link."""

    causes = ("PCI001", "PCI002")
    leads_to = ("NET006", "BEN001", "JOB015", "BEN002", "BEN003", "BEN005")
    because = "every collective waits for the rank behind the degraded PCIe link"


class AcsOrIommu(Rule):
    """ACS redirect and an IOMMU that translates send traffic between PCIe devices through the root complex: P2P is
    refused or slow, GPUDirect RDMA is slow although on, completions fail with status 4, 10 or 11, data is wrong. Only
    on bare metal: in a guest the host's bridges decide. Switch ACS off and measure again."""

    causes = ("PCI004",)
    leads_to = ("P2P001", "GDR001", "NET008", "JOB005", "JOB006", "BEN001", "JOB015", "BEN004")
    because = "traffic between PCIe devices goes through the root complex, where it is slow or refused"

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        if other.id == "NET008":
            told = f"{other.message} {other.observed}"
            return any(f"status {number}" in told for number in (4, 10, 11))
        return other.id != "JOB005" or error_is(other, scene, "cuda", "watchdog", "timeout")


class ClocksHeldDown(Rule):
    """A GPU at low clocks launches and copies more slowly; its rank arrives late in every collective."""

    causes = ("GPU004",)
    leads_to = ("JOB008", "BEN001", "JOB015", "BEN002")
    because = "the rank of a GPU at low clocks is late in every collective"
