"""Hand-made machines and results for the report tests. Imported by name; not collected."""

from collections.abc import Iterable
from dataclasses import replace

from tests.scanned import node_at
from topodiag.checks import registry
from topodiag.checks.interface import NodeCheck
from topodiag.model.devices import Gpu, Nic, NicRole, NvLink, PciDevice
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Input, Outcome, Severity, Status, Where
from topodiag.model.node import Node
from topodiag.model.provenance import Disagreement, Fact, NotObserved, Origin, Topic, known
from topodiag.model.result import Result, UnreadLine

BRIDGE_CLASS = 0x060400


def node_check_ids():
    """The checks that judge a node; those of jobs have no outcome for one."""
    return tuple(i for i in registry.ids() if any(issubclass(cls, NodeCheck) for cls in registry.check_classes(i)))


def pci(bus_id, parent=None, *, code=BRIDGE_CLASS, vendor=0x1000, gen=5, width=16, port=None, numa=0, **rest):
    return PciDevice(
        bus_id,
        class_code=known(code),
        vendor=known(vendor),
        numa=known(numa),
        parent=parent,
        root="pci0000:00",
        gen=known(gen),
        width=known(width),
        max_gen=known(rest.pop("max_gen", 5)),
        max_width=known(rest.pop("max_width", 16)),
        port_type=known(port) if port else Fact(why="not a bridge"),
        **rest,
    )


def links(active, total=18, rate=26.562):
    return tuple(
        NvLink(i, state=known("active"), line_gbs=known(rate)) if i < active else NvLink(i, state=known("inactive"))
        for i in range(total)
    )


def h100(host="gpu-001"):
    """A captured DGX H100 with the NICs of its rails and the one of its management."""
    node = node_at("fixture:dgx-h100-healthy")
    return replace(node, host=host, nics=tuple(nic for nic in node.nics if nic.role is not NicRole.STORAGE))


def sick_h100(host="gpu-002"):
    """GPU3 has 12 of 18 NVLinks, GPU5 sits on x8, mlx5_6 is down, GPU7's PCIe idles at Gen1."""
    node = h100(host)
    gpus, nics, devices = list(node.gpus), list(node.nics), dict(node.pci)
    gpus[3] = replace(gpus[3], nvlinks=links(12))
    devices[gpus[5].bus_id] = replace(devices[gpus[5].bus_id], width=known(8))
    devices[gpus[7].bus_id] = replace(devices[gpus[7].bus_id], gen=known(1))
    at = [nic.name for nic in nics].index("mlx5_6")
    port = replace(nics[at].ports[0], state=known("DOWN"), phys_state=known("Polling"), rate_gbps=known(10.0))
    nics[at] = replace(nics[at], ports=(port,))
    gap = NotObserved("dmesg", "permission denied: kernel.dmesg_restrict is 1", needs_root=True)
    disagreement = Disagreement(
        "GPU5", "pcie width", "8", Origin("trees/sys-pci.tree", 12), "16", Origin("commands/nvidia-smi-q.txt", 301)
    )
    return replace(
        node, gpus=tuple(gpus), nics=tuple(nics), pci=devices, not_observed=(gap,), disagreements=(disagreement,)
    )


def finding(check="NVL001", severity=Severity.ERROR, message="GPU3 has 12 of 18 NVLinks active", **rest):
    given = {
        "observed": "12 active links of 26.6 GB/s",
        "expected": "18 links (datasheet of the H100 SXM; all 7 peers have 18)",
        "fix": ("Reset the GPU: nvidia-smi --gpu-reset -i 3", "If links stay down, drain the node and reseat the GPU"),
        "where": Where(nodes=("gpu-002",), gpus=("GPU3",)),
    }
    return Finding(check, severity, message, **(given | rest))


SICK_FINDINGS = (
    finding(
        cost=Cost(159.4, 0.333, "of the GPU's NVLink bandwidth in one direction"),
        evidence=(
            Origin("commands/nvidia-smi-nvlink-s.txt", 71, "Link 12: <inactive>", "nvidia-smi nvlink -s"),
            Origin("commands/nvidia-smi-nvlink-s.txt", 72, "Link 13: <inactive>", "nvidia-smi nvlink -s"),
        ),
    ),
    finding(
        "NIC001",
        message="compute NIC mlx5_6 is down (Polling)",
        observed="port 1 DOWN, Polling",
        expected="ACTIVE, LinkUp, as its 7 peers",
        where=Where(nodes=("gpu-002",), nics=("mlx5_6",)),
        cost=Cost(50.0, 0.125, "of the node's network bandwidth"),
        evidence=(Origin("trees/sys-infiniband.tree", 203, "ports/1/state 1: DOWN"),),
        fix=("Check the cable and the switch port of mlx5_6",),
    ),
    finding(
        "PCI001",
        Severity.WARNING,
        "GPU5 runs on 8 of 16 PCIe lanes",
        observed="x8",
        expected="x16 (GPU and slot can do it; peers have x16)",
        where=Where(nodes=("gpu-002",), gpus=("GPU5",), links=("0000:63:00.0",)),
        cost=Cost(24.0, 0.5, "host and NIC bandwidth of GPU5"),
        evidence=(Origin("trees/sys-pci.tree", 12, "current_link_width 8"),),
        fix=("Reseat the GPU or its riser", "Look for AER errors on the slot above"),
        confidence=Confidence.MEDIUM,
    ),
)


def outcomes(findings: Iterable[Finding] = (), node="gpu-002", unknown_ids=("PCI003", "NIC003"), na=("TOP003",)):
    by_id: dict[str, list[Finding]] = {}
    for item in findings:
        by_id.setdefault(item.id, []).append(item)
    made = []
    for check in node_check_ids():
        if check in by_id:
            made.append(Outcome(check, Status.FINDING, node, tuple(by_id[check]), coverage=Coverage(8, 8, "GPUs")))
        elif check in unknown_ids:
            made.append(Outcome(check, Status.UNKNOWN, node, why="no counters in the evidence"))
        elif check in na:
            made.append(Outcome(check, Status.NOT_APPLICABLE, node, why="not a guest"))
        else:
            made.append(Outcome(check, Status.CLEAN, node))
    return tuple(made)


def healthy():
    node = h100()
    return Result(
        inputs=(Input("gpu-001.tar.gz", "bundle", "ab" * 32, 4000, 900),),
        nodes=(node,),
        outcomes=outcomes(node=node.host),
    )


def sick():
    node = sick_h100()
    return Result(
        inputs=(Input("gpu-002.tar.gz", "bundle", "cd" * 32, 4000, 900, 1),),
        nodes=(node,),
        outcomes=outcomes(SICK_FINDINGS),
        findings=SICK_FINDINGS,
        not_observed=node.not_observed,
        unread=(UnreadLine("commands/ibstat.txt", 44, "%% something new", "not a line of ibstat"),),
    )


def without_gpus(*, hung=False):
    """A machine with no NVIDIA function on its bus; or, `hung`, one whose nvidia-smi and NVML never answered."""
    disk = pci("0000:01:00.0", code=0x010802, vendor=0x144D, gen=4, width=4, max_gen=4, max_width=4)
    gap = NotObserved(
        "nvidia-smi topo -m", "no answer within 10 s" if hung else "not installed", of=frozenset({Topic.GPUS})
    )
    devices = {} if hung else {disk.bus_id: disk}
    node = Node("head-1", pci=devices, not_observed=(gap,), topics=frozenset() if hung else frozenset({Topic.PCI}))
    ids = node_check_ids()
    return Result(nodes=(node,), outcomes=outcomes(node="head-1", unknown_ids=ids), not_observed=(gap,))


def only_matrix():
    """All that a pasted `nvidia-smi topo -m` tells."""
    gpus = tuple(Gpu(i, numa=known(i // 2), cpu_affinity=known(f"{i // 2 * 32}-{i // 2 * 32 + 31}")) for i in range(4))
    nics = tuple(Nic(f"mlx5_{i}", smi_label=f"NIC{i}", numa=known(i)) for i in range(2))
    facts = {}
    for a in gpus:
        for b in gpus:
            if a is not b:
                facts[a.label, b.label] = known("NV4" if a.numa == b.numa else "SYS")
        for nic in nics:
            facts[a.label, nic.name] = known("PHB" if nic.numa == a.numa else "SYS")
    node = Node("topo.txt", gpus=gpus, nics=nics, smi_matrix=facts, topics=frozenset({Topic.GPUS, Topic.GPU_PAIRS}))
    seen = ("NVL004", "NUM001")
    rest = tuple(check for check in node_check_ids() if check not in seen)
    return Result(
        inputs=(Input("topo.txt", "nvidia-smi-topo", "ef" * 32, 12, 10),),
        nodes=(node,),
        outcomes=outcomes(node=node.host, unknown_ids=rest, na=()),
    )


def large(gpus=72):
    parts = tuple(
        Gpu(i, name=known("NVIDIA GB200"), numa=known(i // 36), nvlinks=links(18, rate=53.125)) for i in range(gpus)
    )
    facts = {(a.label, b.label): known("NV18") for a in parts for b in parts if a is not b}
    node = Node("rack-7", gpus=parts, smi_matrix=facts, topics=frozenset({Topic.GPUS}))
    return Result(nodes=(node,), outcomes=outcomes(node=node.host))
