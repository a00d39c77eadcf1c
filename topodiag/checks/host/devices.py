"""Devices that the host has and that the container or job cannot open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import cluster
from topodiag.checks.shared.node.kernel import no_gpu
from topodiag.model.devices import NVIDIA, PciKind
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.units import plural

IMEX = "nvidia-caps-imex-channels"


class DevicesNotGiven(NodeCheck, id="HST002", unless=no_gpu):
    """HST002: the container or job sees fewer devices than the host has

    What it finds
        RDMA adapters without their device nodes (/dev/infiniband/uverbsN), no IMEX channel on a node of a multi-node
        NVLink domain, no /dev/nvidia-uvm, and fewer GPUs than the PCI bus holds. In output of a job: perftest or
        ibstatus that find no RDMA device, UCX that may not open one, libfabric without a provider, MPI that cannot open
        a peer's GPU memory, a process that asks for a GPU which it does not see, and one in which CUDA does not start
        with an unknown error. In a terminal's text, more devices in /sys/class/infiniband than /dev/infiniband has
        nodes for, or than ibv_devices lists.

    Why it matters
        Without uverbs NCCL finds no RDMA device and takes TCP sockets: a tenth of the bandwidth or less. Without an
        IMEX channel cuMemCreate of shareable memory fails, or multi-node NVLink stays unused. Without nvidia-uvm no
        CUDA program starts.

    Evidence it reads
        The names below /dev beside the RDMA devices of sysfs and the GPUs of the PCI bus; a pasted `ls` that finds
        nothing.

    When it stays silent
        Every device has its node. A container that was given some GPUs or NICs of the host is info: that may be the
        plan. An idle tray may have no IMEX channel while no compute domain is active: a warning at most. /dev is not
        in the evidence: unknown.

    How to confirm
        ls -l /dev/infiniband /dev/nvidia* /dev/nvidia-caps-imex-channels        in the container
        ls /sys/class/infiniband

    How to fix
        Give the devices to the container: `--device=/dev/infiniband` and IPC_LOCK, or the RDMA resource of the device
        plugin; the IMEX channel by a ComputeDomain or NVreg_CreateImexChannel0=1.

    References
        NVIDIA IMEX service guide; Kubernetes RDMA shared device plugin; NCCL, src/misc/ibvwrap.cc (a device that
        cannot be opened is left out).
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        system = judged.os
        if not system.devices.known and not system.absent_devices.known:
            return self.unknown(judged, "the device nodes are not in the evidence")
        return self.any_of(judged, (look(self, judged) for look in (_verbs, _channel, _memory, _gpus)))


def _looked_for(node: Node, name: str) -> bool:
    return any(device == name or name.startswith(f"{device}/") for device in node.os.absent_devices.get(frozenset()))


def _verbs(check: NodeCheck, node: Node) -> Finding | None:
    """RDMA devices of sysfs against their nodes; sysfs shows those of the host in most containers."""
    adapters = [nic for nic in node.nics if nic.rdma_name]
    names = node.os.devices.get(frozenset())
    given = sum(name.startswith("infiniband/uverbs") for name in names)
    missing = _looked_for(node, "infiniband")
    if not (names or missing) or (not adapters and not missing) or given >= max(len(adapters), 1):
        return None
    inside = node.os.container.get("none") != "none"
    fact = node.os.absent_devices if missing else node.os.devices
    evidence: tuple[Fact[Any], ...] = (fact, *(port.state for nic in adapters[:1] for port in nic.ports))
    if given:
        few = f"{given} of {plural(len(adapters), 'RDMA device')} can be opened here"
        severity, nodes = Severity.INFO if inside else Severity.WARNING, plural(given, "uverbs node")
        return check.finding(
            check.where(node), "few verbs devices", few, severity=severity, observed=nodes, evidence=evidence
        )
    what = plural(len(adapters), "RDMA device") if adapters else "RDMA"
    return check.finding(
        check.where(node, nics=tuple(nic.name for nic in adapters)),
        "no verbs device",
        f"/dev/infiniband has no uverbs node: {what} cannot be opened here",
        observed="no /dev/infiniband/uverbsN",
        evidence=evidence,
        confidence=Confidence.HIGH if names else Confidence.MEDIUM,
    )


def _channel(check: NodeCheck, node: Node) -> Finding | None:
    domain = any(cluster(gpu) for gpu in node.gpus)
    lacking = node.os.absent_devices.get(frozenset())
    missing = _looked_for(node, IMEX) or any(device.startswith(f"{IMEX}/") for device in lacking)
    names = node.os.devices.get(frozenset())
    if not missing and (not domain or not names or any(name.startswith(f"{IMEX}/channel") for name in names)):
        return None
    return check.finding(
        check.where(node),
        "imex channel",
        "there is no IMEX channel: memory cannot be shared over multi-node NVLink",
        severity=Severity.ERROR if missing else Severity.WARNING,
        observed="no /dev/nvidia-caps-imex-channels/channelN",
        evidence=(node.os.absent_devices if missing else node.os.devices,),
    )


def _memory(check: NodeCheck, node: Node) -> Finding | None:
    names = node.os.devices.get(frozenset())
    driver = any(re.fullmatch(r"nvidia[0-9]{1,3}", name) for name in names)
    if not _looked_for(node, "nvidia-uvm") and (not driver or "nvidia-uvm" in names):
        return None
    return check.finding(
        check.where(node),
        "no uvm node",
        "/dev/nvidia-uvm is missing: no CUDA program starts here",
        observed="no /dev/nvidia-uvm",
        evidence=(node.os.devices,),
    )


def _gpus(check: NodeCheck, node: Node) -> Finding | None:
    """Fewer GPUs than the bus holds, in a container: given on purpose as a rule."""
    if node.os.container.get("none") == "none" or not node.gpus:
        return None
    on_bus = [fn for fn in node.pci.values() if fn.kind is PciKind.GPU and fn.vendor.value == NVIDIA]
    if len(on_bus) <= len(node.gpus):
        return None
    return check.finding(
        check.where(node),
        check.advice("gpus not given", on_bus=len(on_bus)),
        f"the container sees {len(node.gpus)} of {plural(len(on_bus), 'GPU')} of the host",
        observed=plural(len(node.gpus), "GPU"),
        evidence=(node.os.container, node.gpus[0].name),
    )
