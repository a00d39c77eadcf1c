"""Libraries of the NVIDIA driver that the kernel module refuses, for they are of another version."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import BOOT_S
from topodiag.checks.shared.node.kernel import is_start_after, log_was_read, no_gpu, no_log
from topodiag.model.events import Event
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.node import Node

_MODULE = ".ko("
_FURTHER_LINES = 3
"""The driver breaks its sentence into up to four lines."""


class DriverMismatch(NodeCheck, id="HST004"):
    """HST004: the libraries of the NVIDIA driver are of another version than its kernel module

    What it finds
        A process whose libcuda or NVML is of another version than the kernel module that is loaded: an upgrade without
        a reload or a reboot, or an image that brings libraries of its own. In output of a job, also a driver that is
        older than the CUDA of a program (CUDA error 35, the container toolkit's unmet requirement), or that a program
        does not see.

    Why it matters
        The module refuses such a process: no CUDA call and no nvidia-smi works in it (CUDA error 803, "Driver/library
        version mismatch"). Its rank ends before NCCL's init, and all other ranks wait for it.

    Evidence it reads
        `NVRM: API mismatch` in the kernel log, with both versions; "Version mismatch" of its modules; the answer of
        NVML itself (NVML_ERROR_LIB_RM_VERSION_MISMATCH); the version of the module that is loaded.

    When it stays silent
        The module that is loaded now has the version that the library had, or another than the line names, or the log
        shows a later start of the driver without such a line: it was loaded anew since. Where NVML
        answers on the host, only that process has other libraries: a warning. Where NCCL's init completes all the
        same, only NVML is refused, and NCCL sees no NVLink: a warning. No kernel log and no word of NVML: unknown. A
        few lines of a kernel log: unknown.

    How to confirm
        cat /proc/driver/nvidia/version                 the version of the module that is loaded
        ldconfig -p | grep -E 'libcuda|nvidia-ml'       the libraries, on the host and in the job's container
        nvidia-smi                                      "Driver/library version mismatch" where they differ

    How to fix
        Reload the module or reboot; in containers pass in the host's libraries.

    References
        NVIDIA open GPU kernel modules, kernel-open/nvidia/nv.c and src/nvidia/arch/nvalloc/unix (R570): the check of
        the client's version; NVML API reference, nvmlReturn_t; CUDA runtime, cudaErrorSystemDriverMismatch (803).
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        refused = "mismatch" in (judged.os.nvml_error.value or "").lower()
        if not refused and (why := no_gpu(judged)) and not any(map(_refuses, judged.events)):
            return self.not_applicable(judged, why)
        # Of all that a capture holds only the library tells CUDA's version; names and UUIDs are in /proc, too.
        answers = not judged.os.nvml_error.known and judged.os.cuda_version.known
        client, module, event = _last(judged.events)
        if not (refused or answers or event is not None or log_was_read(judged)):
            return self.unknown(judged, f"no answer of NVML is in the evidence, and {no_log(judged)}")
        loaded = judged.os.driver_version.value
        reloaded = loaded and (client == loaded or module not in ("", loaded))
        if not refused and (event is None or reloaded):
            return self.clean(judged)
        return self.any_of(judged, (_fault(self, judged, client, module or loaded or "", event, answers=answers),))


def _refuses(event: Event) -> bool:
    return event.signature == "kernel.api_mismatch"


def _last(events: Sequence[Event]) -> tuple[str, str, Event | None]:
    """(the client's version, the module's, the line) of the last refusal; "" for a version that no line tells."""
    at = next((at for at in reversed(range(len(events))) if _refuses(events[at])), None)
    if at is None or any(_is_of_later_start(event, events[at]) for event in events[at + 1 :]):
        return "", "", None
    lines = [events[at], *(line for line in events[at + 1 : at + 1 + _FURTHER_LINES] if line.kind == "nvrm")]
    versions = [str(line.fields[name]) for line in lines for name in ("version", "value") if name in line.fields]
    # Of two modules that do not fit, the line names the one first that is loaded.
    client, module, *_ = (*(versions[::-1] if _MODULE in events[at].text else versions), "", "")
    return client, module, events[at]


def _is_of_later_start(event: Event, refusal: Event) -> bool:
    """Whether the driver took a GPU by this line after it was loaded anew: the clock of the boot began again, or went
    on for longer than a machine boots."""
    if not is_start_after(event, refusal) or event.time_s is None or refusal.time_s is None:
        return False
    return not 0 <= event.time_s - refusal.time_s <= BOOT_S


def _fault(check: NodeCheck, node: Node, client: str, module: str, event: Event | None, *, answers: bool) -> Finding:
    differ = f"{client} against {module}" if client and module else "their versions differ"
    where = "a process brings other libraries" if answers else "the libraries are others"
    # CUDA does without the modules of screens.
    modules = event.text.partition("mismatch: ")[2] if event is not None and _MODULE in event.text else ""
    refused = f"the NVIDIA kernel module refuses a process: {where} than the module's ({differ})"
    return check.finding(
        check.where(node),
        "client of the driver",
        f"the modules of the NVIDIA driver are of two versions: {modules}" if modules else refused,
        severity=Severity.WARNING if answers or modules else Severity.ERROR,
        observed=differ,
        evidence=(event.origin if event is not None else None, node.os.nvml_error),
        confidence=Confidence.MEDIUM if answers else Confidence.HIGH,
    )
