"""PCI trees that a hypervisor made up: without switches, speeds or NUMA nodes NCCL's model of the node is a guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.devices import compute_nics, distance, gpu_spec, is_efa, pcie_gbs
from topodiag.checks.shared.node.flat_tree import NO_SWITCH, flat_signs, gpus_and_nics, is_flat, is_flat_by
from topodiag.checks.shared.topo_file import alone
from topodiag.hardware.catalog import pcie_nccl_gbs
from topodiag.model.devices import Nic
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.nccl_tree import Element, NcclFile, first_host
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Origin, Topic
from topodiag.words.units import in_gbs, plural

# TOP003 by a topology file alone: links that it does not tell, a flattened tree, no NUMA node.

SPEEDS = (
    "2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s",
    "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe",
)  # fmt: skip
"""What NCCL knows as a link's speed, by prefix (kvDictPciGen of src/graph/topo.cc)."""

NO_SWITCH_ABOVE = "no PCIe switch above"
MOST = 0.5
"""Of more than this share of the devices the link is not told: NCCL's figures are then its own invention."""


def _devices(tree: Element) -> list[tuple[Element, bool]]:
    """The `<pci>` of each GPU and NIC of the first host, and whether a switch stands above it."""
    pairs: list[tuple[Element, bool]] = []
    stack = [(child, False) for cpu in first_host(tree) for child in cpu.having("pci")]
    while stack:
        pci, below = stack.pop()
        if pci.having("gpu") or any(nic.having("net") for nic in pci.having("nic")):
            pairs.append((pci, below))
        stack += [(child, True) for child in pci.having("pci")]
    return sorted(pairs, key=lambda pair: pair[0].line)


def _is_dark(pci: Element) -> bool:
    speed, width = pci.get("link_speed"), (pci.get("link_width") or "").strip()
    return not (speed or "").startswith(SPEEDS) and width in ("", "0", "255")


ASSUMED = (3, 16)
"""Generation and lanes that NCCL takes for a link whose speed it cannot read (src/graph/xml.cc, topo.cc v2.30)."""


class VirtualPciTree(NodeCheck, id="TOP003"):
    """TOP003: the PCI tree is virtual, and NCCL's model of the node is guesswork

    What it finds
        A guest whose PCI tree lost the switches between GPUs and NICs, with link speeds `Unknown`, widths of 0 or
        NUMA nodes of -1, and without a topology file that would give NCCL the true values.

    Why it matters
        NCCL takes a link that it cannot read for Gen3 x16, 12 GB/s instead of 48 GB/s for Gen5 x16, puts every device
        with NUMA node -1 under one processor, and sees all NICs as equally far (PHB): it then opens few channels,
        pairs GPUs with the wrong NICs and leaves GPUDirect RDMA off. On nodes with 8 x 400 Gb/s, tens of GB/s remain
        of about 390 GB/s.

    Evidence it reads
        Whether this is a guest (DMI, CPU flags), /sys/bus/pci (tree, speeds, widths, NUMA nodes), `nvidia-smi topo
        -m`, the GPU's datasheet, NCCL_TOPO_FILE in the settings, the service nvidia-topologyd. In a log: the system
        print, and the notes of NCCL's topology detection. Of a topology file alone: whether it holds links and NUMA
        nodes, because NCCL gets nothing else.

    When it stays silent
        Bare metal. One GPU without RDMA NICs, which has nothing to be joined to. A guest whose tree has its switches.
        Without RDMA NICs: info. NCCL_TOPO_FILE is set or nvidia-topologyd runs, which is the remedy; whether the file
        is set was not seen: unknown. Elastic Fabric Adapters, whose NCCL plug-in brings the topology of the instance
        type. Whether this is a guest is unknown and the tree does not show it: unknown.

    How to confirm
        systemd-detect-virt
        lspci -tv                                        GPUs and NICs side by side below one root
        cat /sys/bus/pci/devices/BUS_ID/{current_link_speed,current_link_width,numa_node}
        export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH     then run: `maxBw 12.0`, NET paths of type PHB

    How to fix
        Set NCCL_TOPO_FILE (in /etc/nccl.conf, so that no job forgets it) to the file that the cloud ships for exactly
        this instance type: Azure's images keep theirs in /opt/microsoft. A file of another machine is worse than none
        (431 to 15 GB/s in Azure's azurehpc-health-checks, issue 142): compare its bus ids with `lspci -D`. Where there
        is no such file, `topodiag emit nccl-topo` makes one of this guest, and shows what NCCL chooses with it: with
        --instance NAME for the types whose layout is published, with --host-capture from a capture of the host, with
        --affinity from what was measured between GPUs and NICs. Who runs the hypervisor can give the guest the real
        switches, widths and NUMA nodes instead.

    References
        NCCL src/graph/xml.cc and src/graph/topo.cc v2.30; NCCL environment variables, NCCL_TOPO_FILE; NVIDIA nccl
        issues 1464, 1591 and 1843.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        if not judged.gpus:
            return self.not_applicable(judged, "no GPU in the evidence")
        if judged.nccl_file is not None and alone(judged):
            return self._of_file(judged, judged.nccl_file)
        if judged.is_vm is False:
            return self.not_applicable(judged, "bare metal")
        nics = compute_nics(judged)
        if len(judged.gpus) == 1 and not nics:
            return self.not_applicable(judged, "one GPU and no RDMA NIC: nothing for NCCL to join")
        signs = flat_signs(judged, nics)
        if not is_flat_by(judged, signs):
            return self._not_flat(judged, nics, signs)
        if (remedy := _remedy(judged, nics)) is not None:
            return self.clean(judged, remedy)
        if Topic.SETTINGS not in judged.topics:
            return self.unknown(judged, "the PCI tree is flattened; whether NCCL_TOPO_FILE mends it was not seen")
        devices = gpus_and_nics(judged, nics)
        known = sum(judged.pci_of(device) is not None for device in devices)
        coverage = Coverage(known, len(devices), "GPUs and NICs in the PCI tree")
        return self.any_of(judged, [self._flattened(judged, nics, signs)], coverage)

    def _of_file(self, node: Node, file: NcclFile) -> Outcome:
        """Whether NCCL would guess most links, or all distances; else why the file says enough."""
        devices = _devices(file.tree)
        if not devices:
            return self.not_applicable(node, "the file names no place of a GPU or NIC")
        dark = [pci for pci, _ in devices if _is_dark(pci)]
        flat = not any(below for _, below in devices)
        homeless = all(cpu.get("numaid") in (None, "-1") for cpu in first_host(file.tree))
        if not (len(dark) > MOST * len(devices) or (flat and homeless)):
            if is_flat(node):
                why = "every NIC is far from every GPU, as in a flattened tree, but speeds are told"
                return self.unknown(node, why)
            return self.clean(node, "link speeds and NUMA nodes are there" if flat else "the PCI tree has its switches")
        signs = (
            (flat, f"{NO_SWITCH_ABOVE} {plural(len(devices), 'device')}"),
            (bool(dark), f"link speed or width unknown on {len(dark)} of {len(devices)}"),
            (homeless, "NUMA node -1"),
        )
        shown = [text for holds, text in signs if holds]
        return self.any_of(node, [self._guessed(node, file, [pci for pci, _ in devices], dark, shown)])

    def _guessed(
        self, node: Node, file: NcclFile, devices: Sequence[Element], dark: Sequence[Element], signs: Sequence[str]
    ) -> Finding:
        """A file that leaves NCCL to guess, by these signs; `dark` are devices whose link it does not tell."""
        flat, first = signs[0].startswith(NO_SWITCH_ABOVE), (dark or devices)[0]
        assumed = f"NCCL assumes {in_gbs(pcie_nccl_gbs(*ASSUMED) or 0.0)} (Gen3 x16) for links of unknown speed"
        return self.finding(
            self.where(node, gpus=[gpu.label for gpu in node.gpus], nics=[nic.name for nic in node.nics]),
            "guessed",
            "the PCI tree in the file is " + ("flattened" if flat else "without link speeds") + ": NCCL guesses",
            severity=Severity.WARNING if node.nics else Severity.INFO,
            observed="; ".join(signs),
            fix=self.steps("complete the file", file=file.name),
            cost=assumed if dark else "NCCL takes every NIC for equally far",
            evidence=[Origin(file.name, first.line or None, f'<pci busid="{first.get("busid")}">')],
            coverage=Coverage(len(devices), len(devices), "GPUs and NICs in the file"),
        )

    def _not_flat(self, node: Node, nics: tuple[Nic, ...], signs: dict[str, Fact[object]]) -> Outcome:
        in_tree = any(node.pci_of(device) is not None for device in gpus_and_nics(node, nics))
        if in_tree and not any(NO_SWITCH in sign for sign in signs):
            return self.clean(node, "the PCI tree has its switches")
        if node.is_vm is None:
            return self.unknown(node, "nothing says whether this is a guest")
        read = any(pci.root for device in gpus_and_nics(node, nics) if (pci := node.pci_of(device)) is not None)
        if not read and not any(distance(node, gpu.label, nic.name)[0] for gpu in node.gpus for nic in nics):
            return self.unknown(node, "neither the PCI tree nor `topo -m` of this guest was seen")
        return self.clean(node, "the guest sees speeds and NUMA nodes, and distances are not all alike far")

    def _flattened(self, node: Node, nics: Sequence[Nic], signs: Mapping[str, Fact[object]]) -> Finding:
        """A made-up tree above GPUs and these NICs: its signs in words, each with a fact that shows it."""
        return self.finding(
            self.where(node, gpus=[gpu.label for gpu in node.gpus], nics=[nic.name for nic in nics]),
            "flattened",
            "the PCI tree is flattened"
            + (f" by virtualisation ({node.os.virtualization.value})" if node.is_vm else ", as in a virtual machine")
            + ": NCCL guesses",
            severity=Severity.WARNING if nics else Severity.INFO,
            observed="; ".join(signs),
            cost=_cost(node),
            evidence=[*signs.values(), node.os.virtualization],
            confidence=Confidence.HIGH if node.is_vm else Confidence.MEDIUM,
        )


def _remedy(node: Node, nics: tuple[Nic, ...]) -> str | None:
    """Why the made-up tree does no harm, or None when nothing mends it."""
    for setting in node.settings:
        if setting.name == "NCCL_TOPO_FILE" and setting.value.strip():
            return f"NCCL_TOPO_FILE is set ({setting.scope})"
    for process in node.processes:
        if process.nccl_env.get({}).get("NCCL_TOPO_FILE"):
            return f"NCCL_TOPO_FILE is set for process {process.pid}"
    if node.os.services.get("nvidia-topologyd", Fact()).value == "active":
        return "nvidia-topologyd gives NCCL the topology"
    if nics and all(is_efa(nic) for nic in nics):
        return "the NCCL plug-in for EFA brings the topology of the instance type"
    return None


def _cost(node: Node) -> Cost:
    real, guess = pcie_gbs(gpu_spec(node.gpus[0])), pcie_nccl_gbs(*ASSUMED)
    if real is None or guess is None or real <= guess:
        return Cost(text="NCCL takes unread links for Gen3 x16 and every NIC for equally far")
    spec = gpu_spec(node.gpus[0])
    name = f"Gen{spec.pcie_gen} x{spec.pcie_width}" if spec is not None else "the real link"
    text = f"NCCL assumes {in_gbs(guess)} (Gen3 x16) per unread link instead of {in_gbs(real)} ({name})"
    return Cost(real - guess, 1 - guess / real, f"{text}, opens fewer channels and leaves GPUDirect RDMA off at PHB")
