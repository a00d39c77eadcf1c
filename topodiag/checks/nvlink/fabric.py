"""The NVSwitch fabric as a whole: Fabric Manager and what the GPUs say of it (fabric_machine.py). Links: links.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import Advice, NodeCheck
from topodiag.checks.nvlink import fabric_machine
from topodiag.checks.nvlink.evidence import count_links
from topodiag.checks.shared.devices import cluster, gpu_spec, just_booted
from topodiag.model.devices import Gpu
from topodiag.model.events import Event
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic
from topodiag.words.units import fold_runs, grouped, in_gbs

IMEX = "nvidia-imex"

NOT_READY_ERRORS = ("notready", "not_ready", "systemnotready", "not yet initialized")
"""How CUDA error 802 and its NVML relatives are spelt: the driver waits for the fabric."""


class FabricNotReady(NodeCheck, id="NVL005"):
    """NVL005: the NVSwitch fabric is not ready

    What it finds
        The Fabric Manager is failed or not running on a node that needs it; a GPU whose fabric state is not
        `Completed` or whose status is not `Success`; fabric health `Unhealthy`, `Limited Capacity` or degraded
        bandwidth; a GPU of a rack machine (GB200, GB300) that is not in the NVLink domain of its peers.

    Why it matters
        Without the fabric CUDA fails with error 802 (`system not yet initialized`) or the GPUs talk over PCIe: 48
        GB/s instead of 370.8 GB/s on H100. A Fabric Manager that died later leaves the links up, but NCCL can no
        longer build NVLink SHARP (NVLS) groups. This costs an 8-GPU H100 all-reduce about a quarter of its bus
        bandwidth (480 to 370 GB/s). A GPU outside its NVLink domain reaches other nodes over the network only.

    Evidence it reads
        GPU fabric information of NVML or `nvidia-smi -q` (Hopper and later), the state of nvidia-fabricmanager and
        nvidia-imex in systemd and its journal, NVSwitches on the PCI bus, link states, uptime, and a version that the
        NVSwitch driver refused in the kernel log. In a job's log: state and health mask
        that NCCL prints of each GPU (`MNNVL busId ..`, 2.20 and later), and its warning of IMEX.

    When it stays silent
        One GPU, two cards with a bridge, or a product without NVSwitches. A service that failed is a warning where
        nothing else of the machine is in the evidence. So is one that is inactive or not installed, with low
        confidence, beside five or more SXM GPUs, where no evidence shows their links, their fabric or work on them. The
        service is judged only where this system runs it: not in containers, not on rack trays (it runs on the switch
        trays), not in a guest that sees no NVSwitch, not where the unit is unknown to systemd and the fabric is up (it
        may run in a driver container). `not supported` is the normal fabric state of A100: its service and links are
        judged instead. Within 10 minutes of boot: info, because the state may be transient.

    How to confirm
        nvidia-smi -q | grep -A 8 -i fabric         State Completed, Status Success, health
        systemctl status nvidia-fabricmanager
        tail -50 /var/log/fabricmanager.log
        cat /proc/driver/nvidia/version             must be exactly the Fabric Manager's version

    How to fix
        Install the Fabric Manager of exactly the driver's version, `systemctl enable --now nvidia-fabricmanager`,
        with no process on the GPUs. If it starts and fails, its log names the switch or link. A GPU that stays out of
        the fabric: reset all GPUs of the board together, else reboot. On rack machines check the rack's fabric
        manager (NMX) and the GPU's partition, then restart nvidia-imex.

    References
        nvml.h (nvmlGpuFabricInfo), NVIDIA Fabric Manager user guide, NCCL src/mnnvl.cc (a GPU joins when its state is
        completed and its cluster is not all zeros), DCGM health watch.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        gpus = [gpu for gpu in judged.gpus if not gpu.mig.value and not gpu.lost.value]
        if (service := self._by_service_alone(judged, gpus)) is not None:
            return service
        why_not = fabric_machine.not_a_fabric(judged, gpus)
        if why_not is not None:
            return self.not_applicable(judged, why_not)
        registered = list(filter(fabric_machine.registers, gpus))
        coverage = Coverage(len(registered), len(gpus), "GPUs with fabric information")
        findings = list(self._of_registered(judged, registered, gpus))
        if not findings and (error := _not_ready_error(judged)):
            findings = [self._driver_waits(judged, error)]
        return self.any_of(judged, findings, coverage) if findings else self._without_fault(judged, gpus, coverage)

    def _of_registered(self, judged: Node, registered: list[Gpu], gpus: list[Gpu]) -> Iterator[Finding]:
        """What the services and the GPUs say that register with the fabric."""
        faults = grouped((fault, gpu) for gpu in registered for fault in fabric_machine.faults_of(judged, gpu, gpus))
        waiting = [gpu for fault, who in faults.items() if fault.waiting for gpu in who]
        manager = _judge_manager(judged, registered, waiting) if fabric_machine.runs_manager_here(judged) else None
        if manager is not None:
            yield self._manager(judged, manager, waiting)
        if judged.os.services.get(IMEX, Fact()).value == "failed" and any(map(cluster, registered)):
            yield self._imex(judged)
        service_says_it = manager is not None and manager.severity is Severity.ERROR
        for fault, members in faults.items():
            if not (fault.waiting and service_says_it):
                yield self._report(judged, fault, members)

    def _by_service_alone(self, node: Node, gpus: Sequence[Gpu]) -> Outcome | None:
        """What a service or the driver says without a word of the GPUs' registration."""
        # On a machine without NVSwitches the services fail as well.
        unseen = not node.topics & {Topic.GPUS, Topic.PCI} if not node.gpus else not _shows_kind(node)
        if (mismatch := _refused_by_driver(node, gpus)) is not None:
            finding = self._versions_differ(node, mismatch)
        elif unseen and not node.gpus and node.os.services.get(IMEX, Fact()).value == "failed":
            finding = self._imex(node)
        elif unseen and fabric_machine.manager_failed(node):
            finding = self._manager(node, fabric_machine.FAILED_ALONE, ())
        elif fabric_machine.manager_absent(node, gpus):
            finding = self._manager(node, fabric_machine.ABSENT_ALONE, ())
        else:
            return None
        return self.any_of(node, [finding], Coverage(0, len(gpus), "GPUs with fabric information"))

    def _without_fault(self, node: Node, gpus: Sequence[Gpu], coverage: Coverage) -> Outcome:
        service = node.os.services.get(fabric_machine.FABRIC_MANAGER, Fact()).value
        answered = any(gpu.fabric.state.known for gpu in gpus) or fabric_machine.links_up(node)
        if coverage.seen == len(gpus) or (not coverage.seen and answered and service == "active"):
            return self.clean(node, coverage=coverage)
        if not coverage.seen and service is not None and fabric_machine.links_up(node):
            return self.clean(node, f"all links are up ({fabric_machine.FABRIC_MANAGER}: {service})", coverage)
        why = f"{coverage}" if coverage.seen else "the driver says nothing of the fabric or the links of any GPU"
        return self.unknown(node, why, coverage)

    def _report(self, node: Node, fault: fabric_machine.Fault, members: Sequence[Gpu]) -> Finding:
        labels = [gpu.label for gpu in members]
        everyone = len(members) == len(node.gpus) > 1
        return self.finding(
            self.where(node, gpus=labels),
            Advice(fault.severity, fault.confidence, fault.expected),
            f"{'all ' + str(len(members)) + ' GPUs' if everyone else fold_runs(labels)}: {fault.text}",
            observed=fault.text,
            fix=self._registration_steps(node, fault),
            cost=_cost(members[0], fault),
            evidence=[
                fact
                for gpu in members
                for fact in (gpu.fabric.state, gpu.fabric.status, gpu.fabric.cluster_uuid, gpu.fabric.health)
            ],
        )

    def _driver_waits(self, node: Node, error: str) -> Finding:
        young = just_booted(node)
        return self.finding(
            self.where(node),
            "driver waits",
            f"the driver is not ready ({error})" + (", minutes after boot: transient" if young else ""),
            severity=Severity.INFO if young else Severity.ERROR,
            observed=f"NVML says {error}",
            fix=self._service_steps(node.os.driver_version.value),
            evidence=(node.os.nvml_error,),
        )

    def _versions_differ(self, node: Node, event: Event) -> Finding:
        kernel, user = str(event.fields["version"]), str(event.fields["value"])
        return self.finding(
            self.where(node),
            "versions differ",
            f"the NVSwitch driver is {kernel}, the Fabric Manager that asked it {user}: the switches are not set up",
            observed=f"kernel {kernel}, program {user}",
            fix=self._service_steps(kernel),
            cost=_cost_without_manager(node, (), Severity.ERROR),
            evidence=(event,),
        )

    def _manager(self, node: Node, manager: fabric_machine.Fault, waiting: Sequence[Gpu]) -> Finding:
        service = node.os.services.get(fabric_machine.FABRIC_MANAGER, Fact())
        wait = f"; {fold_runs([gpu.label for gpu in waiting])} wait" if waiting else ""
        return self.finding(
            self.where(node, gpus=[gpu.label for gpu in waiting]),
            Advice(manager.severity, manager.confidence),
            manager.text,
            observed=f"{fabric_machine.FABRIC_MANAGER} is {service.value}{wait}",
            expected=f"{fabric_machine.FABRIC_MANAGER} active: it sets up the NVSwitches of this board",
            fix=self._service_steps(node.os.driver_version.value, known=service.value != "not-found"),
            cost=_cost_without_manager(node, waiting, manager.severity),
            evidence=[service, *(gpu.fabric.state for gpu in waiting)],
        )

    def _service_steps(self, version: str | None, *, known: bool = True) -> tuple[str, ...]:
        exact = f"version {version}" if version else "the driver's version"
        return self.steps("why the service failed" if known else "", "install and start", exact=exact)

    def _registration_steps(self, node: Node, fault: fabric_machine.Fault) -> tuple[str, ...]:
        if fault.severity is Severity.INFO:
            return self.steps("wait after boot")
        elsewhere = "host of the guest" if node.is_vm else "rack's manager"
        place = "manager's log" if fabric_machine.runs_manager_here(node) else elsewhere
        return self.steps("state of the fabric", place, "reset the board")

    def _imex(self, node: Node) -> Finding:
        return self.finding(
            self.where(node),
            "imex",
            "nvidia-imex has failed: memory cannot be shared over NVLink with other nodes",
            observed="nvidia-imex is failed",
            evidence=(node.os.services.get(IMEX, Fact()),),
        )


def _refused_by_driver(node: Node, gpus: Sequence[Gpu]) -> Event | None:
    """The last refusal of a program of another version, unless the fabric is up all the same: it was mended since."""
    last = next((event for event in reversed(node.events) if event.signature == "kernel.switch_mismatch"), None)
    up = any(gpu.fabric.state.value == "completed" for gpu in gpus) or fabric_machine.links_up(node)
    return None if up or node.os.services.get(fabric_machine.FABRIC_MANAGER, Fact()).value == "active" else last


def _shows_kind(node: Node) -> bool:
    """Whether the evidence shows of a node's GPUs what machine they are of."""
    shown = any(map(gpu_spec, node.gpus)) or any(map(fabric_machine.registers, node.gpus)) or bool(node.nvswitches)
    return shown or fabric_machine.links_to_switch(node) or fabric_machine.bridged_pair(node)


def _not_ready_error(node: Node) -> str:
    """The driver's error where it says that it waits for the fabric, or ""."""
    error = node.os.nvml_error.value or ""
    return error if any(spelling in error.lower() for spelling in NOT_READY_ERRORS) else ""


def _judge_manager(node: Node, gpus: list[Gpu], waiting: list[Gpu]) -> fabric_machine.Fault | None:
    """What the service's state, systemd's word, means, given what the GPUs say of the fabric."""
    state = node.os.services.get(fabric_machine.FABRIC_MANAGER, Fact()).value
    if state in (None, "active", "reloading"):
        return None
    if just_booted(node) and state in ("activating", "inactive"):
        text = f"the Fabric Manager is {state}, minutes after boot: transient"
        return fabric_machine.Fault(Severity.INFO, text)
    if node.os.uptime_s.value is None and state == "activating":
        text = "the Fabric Manager is starting (uptime unknown: may be transient)"
        return fabric_machine.Fault(Severity.INFO, text, confidence=Confidence.MEDIUM)
    active = [count.active for count in count_links(node)]
    if state == "inactive" and not waiting and 0 not in active and _not_needed_here(node, gpus, active):
        return None
    if state == "not-found":
        text = "the Fabric Manager is not installed, and the fabric is down"
        return fabric_machine.Fault(Severity.ERROR, text) if waiting or 0 in active else None
    name = "has failed" if state == "failed" else f"is {state}"
    if gpus and not waiting:
        text = f"the Fabric Manager {name}; the fabric it set up is still there"
        return fabric_machine.Fault(Severity.WARNING, text)
    if state != "failed" and not waiting and fabric_machine.links_up(node):
        text = f"the Fabric Manager {name}, although all links are up"
        return fabric_machine.Fault(Severity.WARNING, text, confidence=Confidence.MEDIUM)
    return fabric_machine.Fault(Severity.ERROR, f"the Fabric Manager {name}")


def _not_needed_here(node: Node, gpus: list[Gpu], active: list[int | None]) -> bool:
    """Whether an inactive manager may be right: in a guest, whose host runs it, or on a board without switches."""
    if node.nvswitches:
        return False
    unseen = not gpus and not any(active) and None in map(gpu_spec, node.gpus)
    return node.is_vm is None or unseen


def _bandwidth(gpu: Gpu) -> tuple[float, str] | None:
    spec = gpu_spec(gpu)
    if spec is None or not spec.nvlinks:
        return None
    total = spec.nvlinks * spec.nvlink_nccl_gbs
    return total, f"{spec.nvlinks} links x {in_gbs(spec.nvlink_nccl_gbs)} = {in_gbs(total)} of NVLink"


def _cost(gpu: Gpu, fault: fabric_machine.Fault) -> Cost:
    width = _bandwidth(gpu)
    nvlink = width[1] if width is not None else "its NVLinks"
    if fault.waiting and fault.severity is not Severity.ERROR:
        return Cost(text="CUDA programs wait or fail with error 802 until the fabric is ready")
    if fault.outlier:
        return Cost(text=f"between nodes this GPU uses the network instead of {nvlink}")
    if fault.waiting or fault.refused:
        return _unusable(gpu)
    return Cost(text=f"part of {nvlink}; the fabric does not say how much")


def _unusable(gpu: Gpu | None) -> Cost:
    gbs, nvlink = (_bandwidth(gpu) if gpu is not None else None) or (None, "NVLink")
    text = f"{nvlink} unusable; CUDA fails with error 802 (system not yet initialized), or NCCL goes over PCIe"
    return Cost(gbs, 1.0 if gbs else None, text)


def _cost_without_manager(node: Node, waiting: Sequence[Gpu], severity: Severity) -> Cost:
    if severity is Severity.ERROR:
        return _unusable(node.gpus[0] if node.gpus and waiting else None)
    return Cost(text="NVLink SHARP groups cannot be made and failed links are not routed round until it runs")
