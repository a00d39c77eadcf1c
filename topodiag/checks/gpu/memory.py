"""Memory of GPUs that lost data, or that waits to be mended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.node import kernel
from topodiag.model.devices import Gpu
from topodiag.model.finding import Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.words.own_data import own_data
from topodiag.words.units import grouped, plural

RESET = (
    "Drain the node and reset the GPU: `sudo nvidia-smi --gpu-reset -i BUS_ID` (with NVSwitches all at once), or reboot"
)
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
            fix = RESET if entry["fix"] == "reset" else entry["fix"]
            yield Severity[entry.get("severity", "error").upper()], words, counters[0].origin, fix


def _fault(check: NodeCheck, node: Node, label: str, signs: Sequence[Sign]) -> Finding:
    """One GPU whose memory is at fault: the worst sign first."""
    ordered = sorted(signs, key=lambda sign: -sign[0])
    broken = ordered[0][0] is Severity.ERROR
    fix = dict.fromkeys((*(helps for _, _, _, helps in ordered), REPLACE))
    return check.finding(
        check.where(node, gpus=kernel.where_gpus([label])),
        "bad memory",
        f"{kernel.named(node, label)}: {ordered[0][1]}",
        severity=ordered[0][0],
        observed="; ".join(dict.fromkeys(words for _, words, _, _ in ordered)),
        fix=kernel.with_bus(node, label, fix),
        cost=LOST if broken else "",
        evidence=(origin for _, _, origin, _ in ordered),
    )
