"""GPUDirect RDMA: the kernel parts that it needs, and the distance at which NCCL uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared import devices
from topodiag.checks.shared.node.flat_tree import is_flat
from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu, Nic, PciKind
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.gpudirect import dmabuf, peermem
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Origin
from topodiag.words.units import fold_runs, grouped, in_gbs, plural

GDR_LEVEL = PathType.PXB
"""Farthest path over which NCCL uses GPUDirect RDMA by default (ncclTopoCheckGdr, src/graph/paths.cc v2.30); on
machines with C2C also P2C."""

OLD_LEVELS = {"0": "LOC", "1": "PIX", "2": "PXB", "3": "PHB", "4": "SYS", "5": "SYS"}
"""NCCL_NET_GDR_LEVEL as a number (NCCL environment variables, legacy values)."""

USELESS = Cost(text="none by NCCL's default: no GPU is within PXB of a NIC")


class GdrModuleMissing(NodeCheck, id="GDR001"):
    """GDR001: GPUDirect RDMA is not possible: neither peer memory module nor DMA-BUF

    What it finds
        GPUs and active RDMA NICs, while the kernel has neither nvidia-peermem (or the older nv_peer_mem) loaded nor
        what DMA-BUF needs: kernel 5.12, NVIDIA's open kernel modules, driver 515 (CUDA 11.7).

    Why it matters
        Every byte goes through host memory: up and down the PCIe link that GPU and NIC share. With both directions in
        use a Gen5 x16 switch uplink of 48 GB/s carries each byte twice, so 24 GB/s are left of a 50 GB/s NIC. Two
        nodes of 8 GPUs went from 33 to 93 GB/s once the module was loaded (NVIDIA nccl issue 1412).

    Evidence it reads
        /sys/module/nvidia_peermem, /sys/kernel/mm/memory_peers, /proc/modules, /proc/driver/nvidia/version, the
        kernel's version; NIC roles and port states. In a log: `GPU Direct RDMA Disabled for HCA 0`; NCCL before 2.13,
        which knows no DMA-BUF, on a node without the module. AMD: /sys/kernel/mm/memory_peers/amdkfd and the
        kernel's version; in a log RCCL's lines on CONFIG_PCI_P2PDMA and CONFIG_DMABUF_MOVE_NOTIFY.

    When it stays silent
        No RDMA NIC for the job's traffic, or none that is up; GeForce cards, which cannot do it; EFA, which has its own
        way. DMA-BUF is possible: NCCL 2.13 and later then need no module. The state of the modules or the driver
        could not be read: unknown. When no GPU is within PXB of a NIC, NCCL would not use it anyway: info.

    How to confirm
        lsmod | grep -E 'nvidia_peermem|nv_peer_mem'
        head -1 /proc/driver/nvidia/version           `Open Kernel Module` or not
        export NCCL_DEBUG=INFO                        then run: `via NET/IB/0/GDRDMA` when it works

    How to fix
        modprobe nvidia-peermem, and for the next boot: echo nvidia-peermem > /etc/modules-load.d/nvidia-peermem.conf.
        `Invalid argument` from modprobe: the driver was built before the RDMA stack (MLNX_OFED, DOCA); reinstall the
        driver after it. Or go to the open kernel modules on kernel 5.12 or later and use DMA-BUF.

    References
        NCCL src/transport/net_ib/gdr.cc v2.30 (the files it tests); NCCL troubleshooting guide, GPU Direct; NVIDIA
        driver README, nvidia-peermem; nccl issues 1412 and 1537.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        gpus, nics, why = _parties(judged)
        if why:
            return self.not_applicable(judged, why)
        nics = tuple(nic for nic in nics if not devices.is_efa(nic))
        if not nics:
            return self.not_applicable(judged, "EFA registers GPU memory in its own way")
        module, shown = peermem(judged)
        if module:
            return self.clean(judged, "a peer memory module is loaded")
        possible, lacking = dmabuf(judged)
        if possible:
            return self.clean(judged, "DMA-BUF is possible without a module")
        if module is None:
            return self.unknown(judged, "the kernel's modules were not seen")
        if possible is None:
            return self.unknown(judged, f"no peer memory module, and for DMA-BUF not known: {lacking}")
        return self.any_of(judged, [self._report(judged, gpus, nics, lacking, shown)])

    def _report(
        self, node: Node, gpus: Sequence[Gpu], nics: Sequence[Nic], lacking: str, shown: Sequence[Origin | None]
    ) -> Finding:
        """Neither way is there, which costs nothing where no GPU is near enough to a NIC to use it."""
        known = [at for gpu in gpus if (at := _nearest(node, gpu, nics)).kind is not None]
        guessed = is_flat(node) or not known
        useless = len(known) == len(gpus) and not guessed and not any(_direct(at) for at in known)
        certain, os = not guessed and all(devices.gpu_spec(gpu) is not None for gpu in gpus), node.os
        return self.finding(
            self.where(node, gpus=[gpu.label for gpu in gpus], nics=[nic.name for nic in nics]),
            "no module",
            f"GPUDirect RDMA is off: no peer memory module and no DMA-BUF for {plural(len(nics), 'RDMA NIC')}"
            + (" (all too far from the GPUs to use it)" if useless else ""),
            severity=Severity.INFO if useless else Severity.ERROR,
            observed=f"no nvidia-peermem; no DMA-BUF: {lacking}",
            cost=USELESS if useless else _host_cost(node, nics),
            evidence=[*shown, os.driver_open, os.kernel, os.driver_version],
            coverage=Coverage(len(known), len(gpus), "GPUs with a known distance"),
            confidence=Confidence.HIGH if certain else Confidence.MEDIUM,
        )


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest NIC of a GPU; `kind` is None when no distance is known."""

    gpu: Gpu
    nic: Nic | None = None
    kind: PathType | None = None
    words: Fact[str] = Fact()


class GdrTooFar(NodeCheck, id="GDR002"):
    """GDR002: GPUDirect RDMA is off for distance: a GPU has no NIC behind its own PCIe switch

    What it finds
        A GPU whose nearest RDMA NIC is farther than PXB (PHB, NODE or SYS in `topo -m`), so that NCCL by default
        sends its traffic through host memory, and no NVLink peer that could pass it on.

    Why it matters
        NCCL uses GPUDirect RDMA up to PXB only. Beyond it each byte is copied to host memory first: one more pass
        over the GPU's PCIe link and the memory bus, and a proxy thread on the CPU. A pod with its NIC on the other
        socket had 25 GB/s where the aligned one had 56 GB/s (Azure AKS pull request 5697).

    Evidence it reads
        Paths from the PCI tree, or `nvidia-smi topo -m`; NVLink between the GPUs; NCCL_NET_GDR_LEVEL in the settings.
        In a log: `GPU Direct RDMA Disabled for GPU 0 / HCA 1 (distance 8 > 5)` and `via NET/IB/1` without /GDRDMA.

    When it stays silent
        No RDMA NIC for the job's traffic; GeForce. Grace machines, where `topo -m` says SYS by design and NCCL goes
        over C2C. A GPU that NVLink joins to one with a near NIC: NCCL's rings leave the node there, or pass its
        traffic on (PXN). NCCL_NET_GDR_LEVEL already allows the distance. A flattened guest (TOP003), whose distances
        do not exist in hardware: unknown. Distances were not read: unknown. No GPU shares a PCIe switch with any NIC:
        the machine is built this way, so info.

    How to confirm
        nvidia-smi topo -m                                      PIX or PXB in the GPU's row is near enough
        export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=NET,GRAPH      then run: `GPU Direct RDMA Disabled .. (distance 8 > 5)`

    How to fix
        Put the NIC into a slot behind the same PCIe switch as the GPU, or give the job (pod) the NIC that is near it.
        Where the board has no such slot, try NCCL_NET_GDR_LEVEL=PHB (SYS across sockets rarely pays) and measure: on
        some processors peer-to-peer through the root complex is slower than host memory.

    References
        NCCL src/graph/paths.cc (ncclTopoCheckGdr) v2.30; NCCL environment, NCCL_NET_GDR_LEVEL; nccl issue 243.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        gpus, nics, why = _parties(judged)
        if why:
            return self.not_applicable(judged, why)
        if any(devices.on_c2c(gpu) for gpu in judged.gpus):
            return self.not_applicable(judged, "GPUs and NICs meet over C2C, where NCCL allows GPUDirect RDMA")
        if all(devices.is_efa(nic) for nic in nics):
            return self.unknown(judged, "the NCCL plug-in for EFA brings its own topology")
        if is_flat(judged):
            return self.unknown(judged, "the PCI tree is virtual: distances in it mean nothing (TOP003)")
        nearest = [_nearest(judged, gpu, nics) for gpu in gpus]
        known = [at for at in nearest if at.kind is not None]
        coverage = Coverage(len(known), len(gpus), "GPUs with a known distance")
        if not known:
            return self.unknown(judged, "no distance between GPUs and NICs was seen")
        level = _level(judged)
        near, far = _near_and_far(judged, known, level)
        if not far:
            unseen = str(coverage) if len(known) < len(gpus) else ""
            return self.any_of(judged, [], coverage, _why_near(nearest, level), unseen)
        named = [at for at in far if near or devices.gpu_spec(at.gpu) is not None]
        if not named:
            return self.unknown(judged, "the products are unknown: whether they can do GPUDirect RDMA cannot be told")
        built_so = not near and not any(_beside_a_nic(judged, gpu) for gpu in gpus)
        return self.any_of(judged, self._by_distance(judged, named, built_so), coverage)

    def _by_distance(self, node: Node, named: Sequence[Nearest], built_so: bool) -> Iterator[Finding]:
        for kind, group in grouped((at.kind or PathType.DIS, at) for at in named).items():
            yield self._report(node, kind, group, built_so)

    def _report(self, node: Node, kind: PathType, group: Sequence[Nearest], built_so: bool) -> Finding:
        labels = [at.gpu.label for at in group]
        nics = list(dict.fromkeys(at.nic.name for at in group if at.nic is not None))
        words = sorted({at.words.value or kind.name for at in group})
        rate = max((port.rate_gbps.get(0.0) for at in group if at.nic for port in at.nic.ports), default=0.0)
        verb = "has" if len(group) == 1 else "have"
        text = f"NCCL stages {fold_runs(labels)}'s traffic in host memory: one more pass over PCIe and the memory bus"
        if rate:
            text += f" for each byte of a {in_gbs(rate / 8)} NIC"
        return self.finding(
            self.where(node, gpus=labels, nics=nics),
            self.advice("no near nic", level=GDR_LEVEL.name, kind=kind.name),
            f"{fold_runs(labels)} {verb} no RDMA NIC within {GDR_LEVEL.name}: the nearest is {'/'.join(words)} away"
            + (", as this machine is built" if built_so else ""),
            severity=Severity.INFO if built_so else Severity.WARNING,
            observed=f"nearest NIC {', '.join(nics[:4])} at {'/'.join(words)}",
            cost=text,
            evidence=[at.words for at in group],
            confidence=Confidence.HIGH if all(devices.gpu_spec(at.gpu) for at in group) else Confidence.MEDIUM,
        )


def _near_and_far(node: Node, known: Sequence[Nearest], level: PathType | None) -> tuple[list[Nearest], list[Nearest]]:
    """GPUs with a NIC near enough by NCCL's rule or by the level that is set, and those without one that NVLink does
    not bring to a near one either."""
    far = [at for at in known if not _direct(at) and not (level is not None and (at.kind or 0) <= level)]
    near = [at for at in known if at not in far]
    reached = devices.nvlink_reach(node, [at.gpu for at in near])
    return near, [at for at in far if at.gpu.index not in reached]


def _beside_a_nic(node: Node, gpu: Gpu) -> bool:
    """Whether some NIC on the bus, in use or not, hangs below a PCIe switch with this GPU."""

    def switches(bus_id: str) -> set[str]:
        return {bridge.bus_id for bridge in node.ancestors(bus_id)[:-1]}  # the last one is the root port

    mine = switches(gpu.bus_id) if gpu.bus_id else set()
    return any(mine & switches(bus_id) for bus_id, fn in node.pci.items() if fn.kind is PciKind.NIC)


def _parties(node: Node) -> tuple[tuple[Gpu, ...], tuple[Nic, ...], str]:
    """The GPUs and NICs that GPUDirect RDMA is a question for, or why there are none."""
    gpus = tuple(gpu for gpu in node.gpus if _can(gpu))
    if not node.gpus:
        return (), (), "no GPU in the evidence"
    if not gpus:
        return (), (), "these GPUs cannot do GPUDirect RDMA"
    nics = devices.compute_nics(node)
    if not nics:
        return gpus, (), "no RDMA NIC for the job's traffic"
    nics = tuple(nic for nic in nics if devices.is_up(nic) is not False)
    return gpus, nics, "" if nics else "no RDMA NIC is up"


def _can(gpu: Gpu) -> bool:
    """Whether the product can do GPUDirect RDMA: data-centre and professional cards, not GeForce or
    TITAN, nor GB10, whose memory is the host's."""
    name = (gpu.name.value or "").lower()
    spec = devices.gpu_spec(gpu)
    return not any(word in name for word in ("geforce", "titan", "gb10")) and (spec is None or spec.p2p_pcie)


def _nearest(node: Node, gpu: Gpu, nics: Sequence[Nic]) -> Nearest:
    ways = [Nearest(gpu, nic, *devices.distance(node, gpu.label, nic.name)) for nic in nics]
    known = (way for way in ways if way.kind is not None)
    return min(known, key=lambda way: way.kind or 0, default=Nearest(gpu))


def _direct(at: Nearest) -> bool:
    """Whether NCCL uses GPUDirect RDMA at this distance by default; by PXN it is the passing GPU's distance."""
    if at.kind is None:
        return False
    return at.kind <= GDR_LEVEL or at.kind in (PathType.P2C, PathType.PXN) or devices.on_c2c(at.gpu)


def _level(node: Node) -> PathType | None:
    """The distance that NCCL_NET_GDR_LEVEL allows, where it is set and understood."""
    texts = (setting.value.strip().upper() for setting in node.settings if setting.name == "NCCL_NET_GDR_LEVEL")
    names = (OLD_LEVELS.get(text, text) for text in texts)
    return next((PathType[name] for name in names if name in PathType.__members__), None)


def _why_near(nearest: list[Nearest], level: PathType | None) -> str:
    if all(at.kind is not None and at.kind <= GDR_LEVEL for at in nearest):
        return ""
    if level is not None and level > GDR_LEVEL:
        return f"NCCL_NET_GDR_LEVEL allows {level.name}"
    return "GPUs without a near NIC reach one over NVLink (PXN)"


def _host_cost(node: Node, nics: Sequence[Nic]) -> Cost:
    rate = max((port.rate_gbps.get(0.0) for nic in nics for port in nic.ports), default=0.0) / 8
    return host_memory_cost(rate, devices.pcie_gbs(devices.gpu_spec(node.gpus[0])) or 0.0)


def host_memory_cost(rate: float, uplink: float) -> Cost:
    """What host memory leaves of a NIC, GB/s: an uplink shared with a GPU carries each byte twice when both directions
    are busy."""
    text = "every byte passes host memory: up and down the PCIe link that GPU and NIC share"
    left = min(rate, uplink / 2)
    if not uplink or left >= rate:
        return Cost(text=text)
    text += f": {in_gbs(left)} are left of a {in_gbs(rate)} NIC when both directions are busy"
    return Cost(rate - left, 1 - left / rate, text)
