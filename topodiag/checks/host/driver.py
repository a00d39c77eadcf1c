"""The NVIDIA driver: libraries that its kernel module refuses, for they are of another version, and probes that never
answered: a read that blocks for ever is how a driver or a device shows that it is stuck."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import BOOT_S
from topodiag.checks.shared.node.kernel import is_start_after, log_was_read, no_gpu, no_log
from topodiag.model.events import Event
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import NotObserved, Origin, Topic
from topodiag.words.units import few, in_s, plural

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


LEAST_S = 5.0
"""Seconds that a probe must have had: one that got less can have been slow."""
_SHOWN = 4


class ProbeHangs(NodeCheck, id="HST005"):
    """HST005: a probe of the node hangs

    What it finds
        Commands, libraries and files of the node that gave no answer in the time of the capture: nvidia-smi and NVML of
        a driver that is stuck, files of a device that is dying, a node on which the whole collector never came to its
        end.

    Why it matters
        A job that asks the same driver waits as the probe did: NCCL's start hangs on this node, and all other ranks
        wait for it. What the probe would have shown is not in the evidence: other faults of the node can be hidden.

    Evidence it reads
        The manifest of a capture: items that were given up, and the seconds that each of them had. Bundles of nodes
        that hung, as `topodiag fleet collect` writes them.

    When it stays silent
        A tool that is not installed, refused, or ended with an error: none of them hangs. A probe that had less than 5
        seconds, or whose turn never came: unknown, it can have been slow. A capture in which nothing asked for the
        GPUs: unknown. Texts that are no capture: not applicable. Where another source answered for the same part it is
        a warning, else an error.

    How to confirm
        timeout 60 nvidia-smi -L; echo $?                124: it hangs
        ps -eo pid,stat,wchan:30,args | grep ' D'        processes that wait in the kernel
        dmesg | grep -iE 'xid|nvrm|hung task'            what the driver said before

    How to fix
        Drain the node. Read the kernel log for the first error of the driver or the device, and reboot: processes in
        state D do not end otherwise. Where nvidia-smi is only slow, switch persistence mode on
        (nvidia-persistenced): without it the driver starts all GPUs anew for each call.

    References
        NVIDIA driver persistence documentation; Linux Documentation/admin-guide/sysctl/kernel.rst (hung_task).
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        late = [gap for gap in judged.not_observed if gap.timed_out_s is not None]
        hung = [gap for gap in late if (gap.timed_out_s or 0.0) >= LEAST_S]
        if hung:
            return self.any_of(judged, self._faults(judged, hung))
        if late:
            return self.unknown(judged, f"{plural(len(late), 'probe')} had less than {in_s(LEAST_S)} to answer")
        if judged.time.value is None:
            return self.not_applicable(judged, "the evidence is no capture of a node")
        if Topic.GPUS not in judged.topics and not no_gpu(judged):
            return self.unknown(judged, "nothing in the evidence asked the driver for its GPUs")
        return self.clean(judged, "every probe ended by itself")

    def _faults(self, node: Node, hung: Sequence[NotObserved]) -> Iterator[Finding]:
        """One for what nobody else answered for, one for the rest."""
        gaps = [gap for gap in hung if (gap.of - node.topics if gap.of else not node.topics)]
        other = [gap for gap in hung if gap not in gaps]
        if gaps:
            yield self._fault(node, gaps, "nothing else answered for what they ask", sure=True)
        if other:
            yield self._fault(node, other, "other sources answered for the same parts", sure=False)

    def _fault(self, node: Node, hung: Sequence[NotObserved], beside: str, *, sure: bool) -> Finding:
        tools = Tally(gap.what.split(" ")[0] for gap in hung)
        names = [f"{name} ({plural(count, 'call')})" if count > 1 else name for name, count in tools.items()]
        longest = max(gap.timed_out_s or 0.0 for gap in hung)
        verb = "hangs" if len(hung) == 1 else "hang"
        return self.finding(
            self.where(node),
            "hung probes",
            f"{few(names, _SHOWN)} {verb}: no answer within {in_s(longest)}",
            sure=sure,
            observed="; ".join(f"{gap.what}: {gap.why}" for gap in hung[:_SHOWN])
            + (f"; {plural(len(hung) - _SHOWN, 'more probe')}" if len(hung) > _SHOWN else "")
            + f"; {beside}",
            evidence=(Origin("manifest.json", text=f"{gap.what}: {gap.why}") for gap in hung),
        )
