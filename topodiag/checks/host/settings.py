"""Settings of the host that cost time or bandwidth: NUMA balancing, CPU governor, IOMMU translation."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import peers_over_pcie
from topodiag.checks.shared.node.kernel import OF_GPUS, no_gpu
from topodiag.model.events import Event
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.node import IOMMU_UNITS, Node

MANAGED = frozenset({"intel_pstate", "amd-pstate", "amd-pstate-epp", "intel_cpufreq"})
"""Drivers below which `powersave` still raises the clock under load (Linux Documentation, intel_pstate, amd-pstate)."""

SLOW_GOVERNORS = frozenset({"powersave", "conservative", "ondemand", "schedutil", "userspace"})

_ON = frozenset({"intel_iommu=on", "amd_iommu=on"})
_RUNS = ("iommu enabled", "amd-vi", "iommu group", "amd iommu", IOMMU_UNITS)
"""Words of lines that are there only where an IOMMU runs."""
_PASSES = frozenset({"iommu=pt", "iommu.passthrough=1", "intel_iommu=off", "amd_iommu=off", "iommu=off"})


class HostSettings(NodeCheck, id="HST003", unless=no_gpu):
    """HST003: a setting of the host costs time or bandwidth

    What it finds
        Automatic NUMA balancing, a CPU governor that keeps clocks low, and an IOMMU that was set to translate where no
        other evidence shows the domains of GPUs and NICs. In a job's log: RCCL's warning of NUMA balancing, and
        files of NCCL's shared memory that something removed while the job began. In numbers that people paste: more
        threads than twice the cores, by threads and processes or by the load, and a container whose CPU limit cuts it
        short.

    Why it matters
        NUMA balancing unmaps pages to see who uses them: proxy threads and copies wait for page faults. A low CPU
        clock delays every kernel launch and every message of the proxy. A translating IOMMU sends peer-to-peer traffic
        through the CPU: on one cluster 100 GB/s of 337 were left until it was set to passthrough.

    Evidence it reads
        /proc/sys/kernel/numa_balancing, scaling_governor and scaling_driver, the kernel command line and the kernel's
        own lines on the IOMMU. `nproc`, the load average, `torch.get_num_threads()`, cpu.stat of a container.

    When it stays silent
        The governor below intel_pstate and amd-pstate raises clocks by itself: info. Domains that were read are
        PCI004's; one GPU without an RDMA NIC has no peer whose traffic the IOMMU could slow. Virtual machines: their
        IOMMU and clocks are the host's. NUMA balancing is info on x86 and a warning on Grace, whose memory it moves
        between CPU and GPU. None of the settings in the evidence: unknown. A load that is high beside tasks that wait
        in the kernel; limits that cut less than a tenth of the periods. Some of the settings alone, and a kernel
        command line without a word on the IOMMU: unknown. The kernel's line of its default domain where nothing shows
        that an IOMMU runs (its own lines, groups, units): unknown. Info: IOMMUs in /sys/class/iommu that nothing makes
        pass, and translation where no two devices talk over PCIe (GeForce cards have no peer-to-peer).

    How to confirm
        grep . /proc/cmdline /proc/sys/kernel/numa_balancing /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
        sudo dmesg | grep -i 'iommu: Default'

    How to fix
        `kernel.numa_balancing = 0` in /etc/sysctl.d; `cpupower frequency-set -g performance`; iommu=pt on the kernel
        command line, then reboot.

    References
        Linux Documentation, admin-guide/sysctl/kernel.rst (numa_balancing), admin-guide/pm (governors), kernel
        parameters (iommu=pt); NVIDIA Grace Performance Tuning Guide.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        system = judged.os
        iommu = [event for event in judged.events if event.kind == "iommu"]
        if not any((system.numa_balancing.known, system.governor.known, system.cmdline.known, iommu)):
            return self.unknown(judged, "none of these settings is in the evidence")
        translation = None if _has_no_peers(judged) else _iommu(self, judged)
        answer = self.any_of(judged, (_balancing(self, judged), _governor(self, judged), translation))
        untold = "" if answer.findings else _untold(judged)
        return self.unknown(judged, f"of these settings the evidence does not hold {untold}") if untold else answer


def _untold(node: Node) -> str:
    """Which of the settings nothing tells of: a kernel command line without a word on the IOMMU leaves it to what the
    kernel was built for."""
    free = node.is_vm or node.cpu.arch.get("x86_64") not in ("x86_64", "amd64", "i686")
    # A capture reads the groups of every function: where none has one, the IOMMU is off.
    typed = (node.time.known and bool(node.pci)) or any(pci_device.iommu_type.known for pci_device in node.pci.values())
    logged = (_translates(node) or _iommu_line(node, "passthrough") or _iommu_line(node, "iommu enabled")) is not None
    known = {
        "NUMA balancing": node.os.numa_balancing.known,
        "the CPU governor": node.os.governor.known or node.is_vm is True,
        "the type of IOMMU domains": free or typed or logged or _passes(node),
    }
    return ", ".join(what for what, known in known.items() if not known)


def _balancing(check: NodeCheck, node: Node) -> Finding | None:
    if not node.os.numa_balancing.value:
        return None
    grace = node.cpu.arch.get("") in ("aarch64", "arm64") and any(gpu.c2c.value for gpu in node.gpus)
    return check.finding(
        check.where(node),
        "balancing",
        "automatic NUMA balancing is on",
        severity=Severity.WARNING if grace else Severity.INFO,
        observed="kernel.numa_balancing is 1",
        evidence=(node.os.numa_balancing,),
    )


def _governor(check: NodeCheck, node: Node) -> Finding | None:
    governor = node.os.governor.get("performance")
    if governor not in SLOW_GOVERNORS or node.is_vm:
        return None
    driver = node.os.frequency_driver.value
    managed = driver is None or driver in MANAGED
    below = f" with {driver}" if driver else ""
    return check.finding(
        check.where(node),
        "governor",
        f"the CPU governor is {governor}{below}",
        severity=Severity.INFO if managed else Severity.WARNING,
        observed=f"scaling_governor {governor}",
        evidence=(node.os.governor, node.os.frequency_driver),
    )


def _has_no_peers(node: Node) -> bool:
    """Whether nothing but one GPU, and no RDMA NIC, is in the evidence."""
    bus_ids = {gpu.bus_id for gpu in node.gpus} or {event.bus_id for event in node.events if event.kind in OF_GPUS}
    return len(bus_ids - {None}) == 1 and not any(nic.rdma_name or nic.smi_label for nic in node.nics)


def _iommu(check: NodeCheck, node: Node) -> Finding | None:
    """Translation by the command line or the kernel's own line, where no domain type was read: those are PCI004's."""
    if node.is_vm or any(device.iommu_type.known for device in node.pci.values()) or _passes(node):
        return None
    line, enabled = _translates(node), _iommu_line(node, "iommu enabled")
    units = _iommu_line(node, IOMMU_UNITS) if node.os.cmdline.known else None
    shown = line or enabled or units
    asked = _asked(node)
    words = shown.text if shown is not None else asked
    if not words or node.cpu.arch.get("x86_64") not in ("x86_64", "amd64", "i686"):
        return None  # Arm servers translate by design
    only_units = shown is units and not asked  # what the kernel was built for may still let them pass
    return check.finding(
        check.where(node),
        "iommu",
        "the IOMMU is on, and the kernel command line does not make it pass: it may translate what GPUs send each other"
        if only_units
        else "the IOMMU translates: P2P and GPUDirect RDMA may be slow, hang or corrupt",
        severity=Severity.INFO if only_units or (node.gpus and not peers_over_pcie(node)) else Severity.WARNING,
        observed=words,
        evidence=(shown.origin if shown is not None else None, node.os.cmdline if asked else None),
        confidence=Confidence.MEDIUM if node.is_vm is False and line is not None else Confidence.LOW,
    )


def _translates(node: Node) -> Event | None:
    """The kernel's line of its default domain, which says something only where an IOMMU runs: every kernel that was
    built with one prints it (drivers/iommu/iommu.c, iommu_subsys_init), also on machines that have none."""
    runs = node.os.iommu_enabled.value or any(_iommu_line(node, words) is not None for words in _RUNS)
    return _iommu_line(node, "translated") if runs or _asked(node) else None


def _asked(node: Node) -> str:
    return next((option for option in _options(node) if option in _ON), "")


def _iommu_line(node: Node, words: str) -> Event | None:
    """The kernel's first line on its IOMMU that holds these words, in lower case."""
    return next((event for event in node.events if event.kind == "iommu" and words in event.text.lower()), None)


def _passes(node: Node) -> bool:
    """Whether the IOMMU was set to pass, or switched off."""
    return any(option in _PASSES for option in _options(node)) or _iommu_line(node, "passthrough") is not None


def _options(node: Node) -> list[str]:
    """The options of the kernel's command line, each with the first of its values (`intel_iommu=on,sm_on`)."""
    return [option.partition(",")[0] for option in node.os.cmdline.get("").split()]
