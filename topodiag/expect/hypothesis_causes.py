"""The causes of a low bandwidth that can be priced: changes of the machine, of NCCL's settings, of the placement.

Changes are those of `topodiag topo what-if` (cost/nccl/topo/changes.py), applied to every node alike: a collective runs
at the speed of its worst node, so one bad node and all bad nodes look the same here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from topodiag.expect.cause import Cause
from topodiag.expect.limit import net_speeds
from topodiag.expect.settings import HCA, nics_left
from topodiag.expect.setup import Setup
from topodiag.expect.unlike import one_of
from topodiag.expect.wires import Wires
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import nearest_minor, path_types
from topodiag.nccl.settings import level
from topodiag.nccl.topo.changes import Change, apply, down, gpus_of, nets_of, off, rate, remove, width
from topodiag.nccl.topo.hca_list import HcaFilter
from topodiag.words.units import in_gbps

SOCKET_GBS = (0.05, 10.0)
"""What NCCL's sockets bring between two nodes, GB/s: from 1 Gb/s Ethernet to 100 Gb/s with several threads and sockets
(NCCL user guide, NCCL_SOCKET_NTHREADS; nccl issues 229, 489)."""


HOST_MEMORY = 0.3
"""What a way through host memory may bring of NCCL's figure for it, which knows links and not memory: 33 of 93 GB/s are
reported without GPUDirect RDMA (nccl issue 1412), 4 of 12 without P2P on GeForce cards."""


NICS_CONFIRM = ("NCCL_DEBUG=INFO: the list behind `NET/IB : Using` on every node", "ibstat; rdma link")

FOUND = 6.0
"""How much more a fault that the machine shows counts than one that could be."""


NARROW_LEAST = 0.8
"""What a narrow link may bring of its share of the lanes: headers and flow control take more of few lanes."""


def causes_of(setup: Setup, collective: str, expected: float) -> Iterator[Cause]:
    """Those that could be of this machine and run, of which `expected` GB/s were expected."""
    if setup.as_found is not None:
        yield Cause(
            f"what was found on the node: {'; '.join(setup.faults[:3])}",
            _as_found,
            FOUND,
            ("NVL001", "PCI001", "PCI002", "NIC001", "NIC002", "GDR001", "TOP004"),
            ("topodiag scan on the node: the findings name the part",),
            least=HOST_MEMORY if any("GPUDirect" in fault for fault in setup.faults) else 1.0,
            shown="the machine shows it",
        )
    if setup.narrow and (setup.nodes > setup.domain or not any(_nvlinks(setup.tree).values())):
        worst = min(setup.narrow, key=lambda link: link.share)
        yield Cause(
            worst.words,
            prior=FOUND,
            checks=("PCI001",),
            confirm=("lspci -vv: LnkSta against LnkCap on the node",),
            gbs=expected,
            span=(NARROW_LEAST * worst.share * expected, expected),
            shown="the bundle shows it",
        )
    if setup.nodes > setup.domain:
        yield from _network(setup, expected)
    if setup.per_node > 1:
        yield from _inside(setup, collective)
    if setup.domain > 1:
        yield Cause(
            "multi-node NVLink is not used: nodes of the rack talk over the network",
            lambda s: replace(s, domain=1, network=s.network or "rdma", env={**s.env, "NCCL_MNNVL_ENABLE": "0"}),
            0.6,
            ("NVL005",),
            ("NCCL_DEBUG=INFO: `MNNVL 1 cliqueId`", "nvidia-smi -q | grep -A6 Fabric; systemctl status nvidia-imex"),
        )


def wire_causes(wires: Wires, expected: float) -> Iterator[Cause]:
    """The same of the network alone, where only wires are known: each as a share of `expected`, GB/s."""
    if wires.nodes == 1:
        return
    for lost in _counts(wires.nics):
        share = expected * (wires.nics - lost) / wires.nics
        words = f"{lost} of {wires.nics} NICs not used"
        prior = _lost_prior(wires.nics, lost)
        yield Cause(words, prior=prior, checks=("NET003", "NIC005"), confirm=NICS_CONFIRM, gbs=share)
    yield Cause(
        f"NIC ports at half their rate ({in_gbps(wires.gbps / 2)})", prior=0.6, checks=("NIC002",),
        confirm=("ibstat | grep Rate on every node", "ib_write_bw between two nodes"), gbs=expected / 2,
    )  # fmt: skip
    yield replace(_gdr_off(), least=1.0, gbs=expected, span=(HOST_MEMORY * expected, expected))
    yield _sockets(wires.gbps)
    yield _fabric()


def _lost_prior(nics: int, lost: int) -> float:
    """How common it is that so many NICs are not used."""
    return 1.0 if lost == 1 else 0.5 if lost in (nics - 1, nics // 2) else 0.25


def _gdr_off() -> Cause:
    return Cause(
        "GPUDirect RDMA off: traffic goes through host memory",
        _with(off("gdr")),
        1.0,
        ("GDR001", "GDR002"),
        ("lsmod | grep nvidia_peermem", "NCCL_DEBUG=INFO: `via NET/IB/0/GDRDMA` in the connections"),
        ("NCCL_NET_GDR_LEVEL",),
        least=HOST_MEMORY,
        cleared_by_log=("GDR001",),
    )


def _sockets(gbps: float) -> Cause:
    """`gbps`: of the fastest NIC of a node, whose port may carry them."""
    return Cause(
        "sockets instead of RDMA",
        prior=0.9,
        checks=("NET001", "NET005"),
        confirm=("NCCL_DEBUG=INFO: `Using network Socket`, `via NET/Socket`", "ibv_devinfo inside the container"),
        settings=("NCCL_IB_DISABLE", "NCCL_NET"),
        networks=("sockets",),
        gbs=SOCKET_GBS[1],
        span=(SOCKET_GBS[0], min(SOCKET_GBS[1], max(gbps / 16, 1.0))),
        slow_start=True,
        cleared_by_log=("NET001",),
    )


def _as_found(setup: Setup) -> Setup:
    return replace(setup, tree=setup.as_found) if setup.as_found is not None else setup


def _with(*changes: Change) -> Callable[[Setup], Setup]:
    def with_changes(setup: Setup) -> Setup:
        changed = apply(setup.tree, changes, setup.env)
        return replace(setup, tree=changed.tree, env=dict(changed.env))

    return with_changes


def _network(setup: Setup, expected: float) -> Iterator[Cause]:
    names = nets_of(setup.tree)
    count = len(names)
    speeds = {name: speed for name, speed in zip(names, net_speeds(setup.tree), strict=False) if speed >= 2}
    filtered = nics_left(setup.costly.get(HCA, ""), names)
    if filtered is not None and filtered < count:
        yield _filter_cause(setup, names, filtered)
    for lost in _counts(count) if filtered is None else ():
        left = count - lost
        words = (
            f"{lost} of {count} NICs not used" if left > 1 else f"one NIC of {count} carries all (wrong NIC chosen?)"
        )
        changes = tuple(remove(name) for name in names[-lost:])
        prior, checks = _lost_prior(count, lost), ("NET003", "NIC005", "NIC001")
        yield Cause(words, _with(*changes), prior, checks, NICS_CONFIRM, cleared_by_log=("NET003",))
    yield _gdr_off()
    yield _sockets(max(net_speeds(setup.tree), default=80.0))
    yield from host_bridge(setup, expected)
    if speeds:
        first, speed = next(iter(speeds.items()))
        half = int(speed / 2)
        yield Cause(
            f"one NIC port at half its rate ({in_gbps(half)})",
            lambda s: one_of(s, _with(rate(f"{first}={half}"))(s)),
            0.7,
            ("NIC002",),
            ("ibstat | grep Rate on every node", "mlxlink -d DEVICE: speed, raw and effective BER"),
            cleared_by_nodes=("NIC002",),
        )
        yield Cause(
            f"all NIC ports at half their rate ({in_gbps(half)})",
            _with(*(rate(f"{name}={int(speed / 2)}") for name, speed in speeds.items())),
            0.4,
            ("NIC002",),
            ("ibstat | grep Rate on every node", "ib_write_bw between two nodes"),
            cleared_by_nodes=("NIC002",),
        )
        yield Cause(
            "one direction at a time: NICs or PCIe do not carry both ways at full rate",
            _halved_network,
            0.3,
            (),
            ("ib_write_bw --bidirectional against one way", "relaxed ordering: NCCL_IB_PCI_RELAXED_ORDERING, ACS"),
            both_ways=True,
        )
        yield Cause(
            "PCIe link of one NIC at half its width",
            lambda s: _narrow_nic(s, first),
            0.6,
            ("PCI001", "PCI002"),
            ("lspci -vv: LnkSta of the NIC against LnkCap",),
            cleared_by_nodes=("PCI001",),
        )
    yield _fabric()


def _filter_cause(setup: Setup, names: Sequence[str], left: int) -> Cause:
    """The setting itself, with the NICs that it takes away."""
    value = setup.costly[HCA]
    kept = [name for name in names if HcaFilter(value).takes(name, 1)]
    texts = [name for name in names if name not in kept] if len(kept) == left else list(names[left:])
    return Cause(
        f"{HCA}={value} leaves {left} of {len(names)} NICs",
        _with(*(remove(name) for name in texts)),
        FOUND,
        ("NET003",),
        (f"unset {HCA}, or name all compute NICs, and run again",),
        (HCA,),
    )


def _fabric() -> Cause:
    return Cause(
        "lossy or congested fabric: retransmissions, hash collisions of flows",
        prior=0.25,
        checks=("NIC003", "NET008"),
        confirm=("ethtool -S / perfquery: discards, out of sequence, retransmissions", "topodiag bench plan: pairs"),
        gbs=1.0,
        span=(0.0, float("inf")),
    )


def _counts(nics: int) -> list[int]:
    """How many NICs may be lost, of those worth a search each."""
    return sorted({lost for lost in (1, 2, nics // 2, nics - 1) if 0 < lost < nics})


def _halved_network(setup: Setup) -> Setup:
    speeds = zip(nets_of(setup.tree), net_speeds(setup.tree), strict=False)
    return _with(*(rate(f"{name}={int(speed / 2)}") for name, speed in speeds if speed >= 2))(setup)


def _narrow_nic(setup: Setup, name: str) -> Setup:
    return _with(width(f"{name}={max(_lanes(setup.tree, name) // 2, 1)}"))(setup)


def _lanes(tree: Element, net: str) -> int:
    for element in tree.walk():
        if any(port.get("name") == net for port in element.nets):
            lanes = element.number("link_width")
            return lanes if lanes in (2, 4, 8, 16) else 16
    return 16


def _inside(setup: Setup, collective: str) -> Iterator[Cause]:
    links = _nvlinks(setup.tree)
    most = max(links.values(), default=0)
    p2p_confirm = (
        "NCCL_DEBUG=INFO: `via SHM` in place of `via P2P`",
        "nvidia-smi topo -p2p r",
        "lspci -vv | grep ACSCtl",
    )
    if most:
        first = min(links)
        nvlink_confirm = ("nvidia-smi nvlink -s: every GPU has the same active links", "nvidia-smi topo -m: NV counts")
        for lost in sorted({1, most // 3, most // 2} - {0}):
            words = f"{lost} of {most} NVLinks of one GPU down"
            prior = 0.7 if lost == 1 else 0.5
            yield Cause(
                words, _with(down(f"nvlink:GPU{first}:{lost}")), prior, ("NVL001", "TOP004"), nvlink_confirm,
                cleared_by_nodes=("NVL001",),
            )  # fmt: skip
        if setup.per_node > 2:
            yield Cause(
                "one GPU without any NVLink",
                _with(down(f"nvlink:GPU{first}")),
                0.5,
                ("NVL001", "NVL005", "TOP004"),
                nvlink_confirm,
                cleared_by_nodes=("NVL001",),
            )
        if setup.sm >= 90 and collective == "all_reduce" and setup.env.get("NCCL_NVLS_ENABLE") != "0":
            yield Cause(
                "NVLS off: no reduction in the NVSwitches",
                _with(off("nvls")),
                0.9,
                ("NVL005",),
                (
                    "NCCL_DEBUG=INFO: `NVLS multicast support is`, `nvls channels`",
                    "systemctl status nvidia-fabricmanager",
                ),
                ("NCCL_NVLS_ENABLE",),
            )
    yield Cause(
        "P2P off between GPUs: traffic inside a node goes through host memory" if most else
        "P2P off between GPUs: traffic goes through host memory",
        _with(off("p2p"), off("nvls")),
        0.7,
        ("P2P001", "P2P002", "PCI004"),
        p2p_confirm,
        ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"),
        slow_start=True,
        least=HOST_MEMORY,
        cleared_by_log=("P2P001",),
    )  # fmt: skip
    gpus = gpus_of(setup.tree)
    if gpus and not most:
        number, pci = next(iter(gpus.items()))
        lanes = pci.get("link_width") or ""
        if lanes in ("4", "8", "16"):
            yield Cause(
                f"PCIe link of one GPU at half its width (x{int(lanes) // 2})",
                _with(width(f"GPU{number}={int(lanes) // 2}")),
                0.7,
                ("PCI001", "PCI002"),
                ("nvidia-smi -q -d PERFORMANCE,PCIE under load; lspci -vv: LnkSta against LnkCap",),
                cleared_by_nodes=("PCI001",),
            )
    yield Cause(
        "GPUs throttled or shared with another job, or a debug build",
        prior=0.1,
        confirm=("nvidia-smi -q -d PERFORMANCE,CLOCK under load; nvidia-smi pmon", "run again, alone, release build"),
        gbs=1.0,
        span=(0.0, float("inf")),
    )
    if setup.nodes == 1 and nets_of(setup.tree) and setup.per_node % 2 == 0:
        yield Cause(
            "the ranks are on two nodes: a group meant for one NVLink domain crosses the network",
            lambda s: replace(s, nodes=2, network=s.network or "rdma"),
            0.4,
            ("PLC001",),
            ("hostname of every rank (srun -l hostname)", "the `Using devices` list of nccl-tests"),
        )


def _nvlinks(tree: Element) -> Mapping[int, int]:
    """Links of every GPU that has some."""
    links = {}
    for number, pci in gpus_of(tree).items():
        total = sum(link.number("count") for gpu in pci.having("gpu") for link in gpu.having("nvlink"))
        if total:
            links[number] = total
    return links


LEAVES = (0.3, 0.85)
"""What peer-to-peer traffic through a host bridge leaves of the rate in both directions at once: root complexes split
and reorder it, and how well depends on the processor. NCCL's own choice stops before it (NCCL user guide,
NCCL_NET_GDR_LEVEL)."""
GDR_LEVEL = "NCCL_NET_GDR_LEVEL"


def host_bridge(setup: Setup, expected: float) -> Iterator[Cause]:
    """The cause where no GPU has a NIC below its own root port and a setting lets GPUDirect RDMA go farther. `expected`
    is the bus bandwidth without it, GB/s."""
    if not _beyond(setup.tree) or not _reaches(setup):
        return
    yield Cause(
        f"GPUDirect RDMA through the host bridge ({GDR_LEVEL}={setup.env[GDR_LEVEL]}): it does not carry both"
        " directions at full rate",
        prior=1.2,
        checks=("GDR002",),
        confirm=(
            f"unset {GDR_LEVEL}, measure again: NCCL then goes through host memory at this distance",
            "ib_write_bw --use_cuda=0 -b against one way; nvidia-smi topo -m: PHB or SYS",
        ),
        gbs=expected,
        span=(LEAVES[0] * expected, LEAVES[1] * expected),
        both_ways=True,
    )


def _reaches(setup: Setup) -> bool:
    minor = nearest_minor(setup.version)
    farthest = level(setup.env.get(GDR_LEVEL), minor)
    return farthest is not None and farthest >= path_types(minor).numbers["PHB"]


def _beyond(tree: Element) -> bool:
    below = [{node.tag for node in port.walk()} for cpu in tree.having("cpu") for port in cpu.having("pci")]
    return bool(below) and not any({"gpu", "net"} <= tags for tags in below)
