"""Machines built by hand for the tests of checks: healthy ones, to be bent with `with_gpu`, `with_words`, `replace`."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, wraps
from typing import Any

from topodiag.model.devices import Gpu, GpuFabric, Nic, NicPort, NicRole, NumaNode, NvLink, PciDevice
from topodiag.model.finding import Outcome, Status
from topodiag.model.links import Path
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Cpu, Node, Os
from topodiag.model.provenance import Counter, Fact, Origin, Topic

HOUR = 3600.0
ZERO_UUID = "00000000-0000-0000-0000-000000000000"
WORDS = {"PIX": PathType.PIX, "PXB": PathType.PXB, "PHB": PathType.PHB, "NODE": PathType.PHB, "SYS": PathType.SYS}


def built_once(build: Callable[..., Node]) -> Callable[..., Node]:
    """A machine that many tests bend is built once. Each gets tables of its own, whose entries nobody changes."""
    kept = cache(build)

    @wraps(build)
    def again(*arguments: Any, **named: Any) -> Node:
        node = kept(*arguments, **named)
        return replace(
            node, pci=dict(node.pci), paths=dict(node.paths), smi_matrix=dict(node.smi_matrix), p2p=dict(node.p2p)
        )

    return again


def read(value: Any, source: str = "made", line: int = 1) -> Fact[Any]:
    """A fact that was read from a line."""
    return Fact(value, Origin(source, line, str(value)))


def link(index: int, state: str = "active", rate: float | None = None, **counts: int) -> NvLink:
    """One NVLink; `counts` are single readings of its counters."""
    counters = {name: Counter(name, first=read(value, "nvlink-e", index)) for name, value in counts.items()}
    line = read(rate, "nvlink-s", index) if rate and state == "active" else Fact()
    return NvLink(index, state=read(state, "nvlink-s", index), line_gbs=line, counters=counters)


def links(count: int, rate: float, down: tuple[int, ...] = ()) -> tuple[NvLink, ...]:
    return tuple(link(at, "inactive" if at in down else "active", rate) for at in range(count))


def gpu(index: int, name: str, sm: int, numa: int, **more: Any) -> Gpu:
    bus = more.pop("bus_id", f"0000:{0x10 + index * 8:02x}:00.0")
    return Gpu(index, bus, name=read(name), sm=read(sm), numa=read(numa), mig=read(False), **more)


def nic(index: int, numa: int, *, rate: float = 400.0, layer: str = "InfiniBand", **more: Any) -> Nic:
    """An active RDMA NIC for the job's traffic."""
    name = more.pop("name", f"mlx5_{index}")
    port = NicPort(1, state=read("ACTIVE"), phys_state=read("LinkUp"), rate_gbps=read(rate), link_layer=read(layer))
    return Nic(
        name,
        more.pop("bus_id", f"0000:{0x12 + index * 8:02x}:00.0"),
        rdma_name=name,
        driver=more.pop("driver", read("mlx5_core")),
        numa=read(numa),
        ports=more.pop("ports", (port,)),
        role=more.pop("role", NicRole.COMPUTE),
        **more,
    )


def matrix(gpus: list[Gpu], nics: list[Nic], word: Callable[[Any, Any], str]) -> dict[tuple[str, str], Fact[str]]:
    """The cells of `topo -m` for every ordered pair of devices that `word` has a word for."""
    devices: list[Gpu | Nic] = [*gpus, *nics]
    names = {id(device): device.label if isinstance(device, Gpu) else device.name for device in devices}
    return {
        (names[id(a)], names[id(b)]): Fact(text, Origin("topo-m", 2, f"{names[id(a)]} {names[id(b)]} {text}"))
        for a in devices
        for b in devices
        if a is not b and (text := word(a, b))
    }


def paths(cells: dict[tuple[str, str], Fact[str]]) -> dict[tuple[str, str], Path]:
    return {
        pair: Path(PathType.NVL if (fact.value or "").startswith("NV") else WORDS[fact.value or ""])
        for pair, fact in cells.items()
    }


def sockets(*cpus: str, per_socket: int = 1) -> tuple[NumaNode, ...]:
    """NUMA nodes in order, so many per socket."""
    return tuple(NumaNode(at, cpus=read(text), socket=read(at // per_socket)) for at, text in enumerate(cpus))


def pci_tree(gpus: list[Gpu], nics: list[Nic], gen: int) -> dict[str, PciDevice]:
    """Each GPU with the NIC of the same number under one switch."""
    devices: dict[str, PciDevice] = {}
    for at, device in enumerate(gpus):
        base = 0x80 + at * 4
        port, up = f"0000:{base:02x}:01.0", f"0000:{base + 1:02x}:00.0"
        devices[port] = PciDevice(
            port, class_code=read(0x060400), root=f"pci0000:{base:02x}", port_type=read("root-port")
        )
        devices[up] = PciDevice(up, class_code=read(0x060400), parent=port, port_type=read("upstream"))
        for number, leaf in enumerate([device, *nics[at : at + 1]]):
            down = f"0000:{base + 2:02x}:{number:02x}.0"
            devices[down] = PciDevice(down, class_code=read(0x060400), parent=up, port_type=read("downstream"))
            code = 0x030200 if isinstance(leaf, Gpu) else 0x020700
            assert leaf.bus_id is not None
            devices[leaf.bus_id] = PciDevice(
                leaf.bus_id, class_code=read(code), parent=down, numa=leaf.numa, gen=read(gen), width=read(16),
                max_gen=read(gen), max_width=read(16),
            )  # fmt: skip
    return devices


def _bare_metal(**more: Any) -> Os:
    facts: dict[str, Any] = {
        "kernel": read("5.15.0-91-generic"),
        "uptime_s": read(100 * HOUR),
        "virtualization": read("none"),
        "container": read("none"),
        "driver_version": read("570.86.15"),
        "driver_open": read(True),
        "cuda_version": read("12.8"),
        "peermem": read(True),
        "modules": read(frozenset({"nvidia", "nvidia_peermem", "mlx5_core"})),
        "services": {"nvidia-fabricmanager": read("active", "systemctl")},
    }
    return Os(**{**facts, **more})


def assembled(
    host: str, cards: list[Gpu], nics: list[Nic], word: Callable[[Any, Any], str], *, gen: int = 0, **more: Any
) -> Node:
    """A machine of these parts, with the words of `topo -m` between them; a PCIe tree where `gen` is given."""
    cells = matrix(cards, nics, word)
    return Node(
        host,
        pci=pci_tree(cards, nics, gen) if gen else {},
        gpus=tuple(cards),
        nics=tuple(nics),
        paths=paths(cells),
        smi_matrix=cells,
        **{"os": _bare_metal(), **more},
    )


@built_once
def hgx_h100(gpus: int = 8) -> Node:
    """Eight H100 on NVSwitches, two sockets, one NDR NIC beside each GPU: healthy."""
    fabric = GpuFabric(
        state=read("completed", "nvml"), status=read("success", "nvml"), clique_id=read(0),
        cluster_uuid=read(ZERO_UUID), health=read("healthy"), bandwidth=read("full"), problems=read(""),
    )  # fmt: skip
    half = max(gpus // 2, 1)
    cards = [
        gpu(
            at, "NVIDIA H100 80GB HBM3", 90, at // half % 2, nvlinks=links(18, 26.562), fabric=fabric,
            cpu_affinity=read("0-55,112-167" if at // half == 0 else "56-111,168-223"),
        )
        for at in range(gpus)
    ]  # fmt: skip
    nics = [nic(at, at // half % 2) for at in range(gpus)]

    def word(a: Any, b: Any) -> str:
        if isinstance(a, Gpu) and isinstance(b, Gpu):
            return "NV18"
        one, other = _number(a), _number(b)
        return "PIX" if one == other else "NODE" if one // half == other // half else "SYS"

    cpu = Cpu(read("x86_64"), read("GenuineIntel"), read(6), read(143), read("Xeon 8480C"), read(224), read(2))
    node = assembled("gpu-001", cards, nics, word, gen=5, cpu=cpu, numa=sockets("0-55,112-167", "56-111,168-223"))
    linked = {pair: read("OK", "p2p-n") for pair, fact in node.smi_matrix.items() if fact.value == "NV18"}
    return replace(node, p2p={"nvlink": linked})


def _number(device: Gpu | Nic) -> int:
    return device.index if isinstance(device, Gpu) else int("".join(filter(str.isdigit, device.name[5:])) or 0)


@built_once
def dgx_a100() -> Node:
    """Eight A100 on NVSwitches, four NUMA nodes a socket, eight HDR NICs two to a switch with two GPUs: healthy.

    As on the real machine, a GPU's NUMA node and its NIC's may differ within one socket.
    """
    numa = (3, 3, 1, 1, 7, 7, 5, 5)
    none = GpuFabric(state=read("not_supported"))
    cards = [
        gpu(at, "NVIDIA A100-SXM4-80GB", 80, numa[at], nvlinks=links(12, 25.0), fabric=none)
        for at in range(8)
    ]  # fmt: skip
    nics = [nic(at, numa[at] - 1 if at == 2 else numa[at], rate=200.0) for at in range(8)]

    def word(a: Any, b: Any) -> str:
        if isinstance(a, Gpu) and isinstance(b, Gpu):
            return "NV12"
        return "PXB" if _number(a) // 2 == _number(b) // 2 else "SYS"

    cpu = Cpu(read("x86_64"), read("AuthenticAMD"), read(23), read(49), read("EPYC 7742"), read(256), read(2))
    domains = sockets(*(f"{at * 16}-{at * 16 + 15}" for at in range(8)), per_socket=4)
    os = _bare_metal(driver_open=read(False))
    return assembled("dgx-001", cards, nics, word, gen=4, cpu=cpu, os=os, numa=domains)


MESH = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2, (2, 6): 1, (3, 7): 1,
    (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip
"""Links between the GPUs of a DGX-1V: each has six, to four peers."""


@built_once
def dgx1_v100() -> Node:
    """Eight V100 in the hybrid cube-mesh, four EDR NICs: healthy. 12 of its 28 pairs have no NVLink by design."""
    cards = [gpu(at, "Tesla V100-SXM2-32GB", 70, at // 4, nvlinks=links(6, 25.781)) for at in range(8)]
    nics = [nic(at, at // 2, rate=100.0) for at in range(4)]

    def word(a: Any, b: Any) -> str:
        if isinstance(a, Gpu) and isinstance(b, Gpu):
            count = MESH.get((min(a.index, b.index), max(a.index, b.index)))
            return f"NV{count}" if count else "SYS" if a.index // 4 != b.index // 4 else "PHB"
        slot = [_number(device) if isinstance(device, Nic) else _number(device) // 2 for device in (a, b)]
        return "PIX" if slot[0] == slot[1] else "NODE" if slot[0] // 2 == slot[1] // 2 else "SYS"

    cpu = Cpu(read("x86_64"), read("GenuineIntel"), read(6), read(79), read("E5-2698 v4"), read(80), read(2))
    os = _bare_metal(services={}, driver_open=read(False))
    domains = sockets("0-19,40-59", "20-39,60-79")
    return assembled("dgx1-001", cards, nics, word, gen=3, cpu=cpu, os=os, numa=domains)


@built_once
def gb200_tray() -> Node:
    """A GB200 compute tray: four GPUs on rack switches, two Grace processors, every NIC SYS from every GPU: healthy."""
    fabric = GpuFabric(
        state=read("completed", "nvml"), status=read("success", "nvml"), clique_id=read(32766, "nvml"),
        cluster_uuid=read("7a5e1c02-1111-2222-3333-444455556666", "nvml"), health=read("healthy"),
        bandwidth=read("full"), problems=read(""),
    )  # fmt: skip
    cards = [
        gpu(
            at, "NVIDIA GB200", 100, at // 2, nvlinks=links(18, 53.125), fabric=fabric, c2c=read(True),
            memory_numa=read(2 + 8 * at), cpu_affinity=read("0-71" if at < 2 else "72-143"),
            bus_id=f"{(8, 9, 24, 25)[at]:04x}:01:00.0",
        )
        for at in range(4)
    ]  # fmt: skip
    nics = [nic(at, at // 2) for at in range(4)]
    node = assembled(
        "tray-01",
        cards,
        nics,
        lambda a, b: "NV18" if isinstance(a, Gpu) and isinstance(b, Gpu) else "SYS",
        cpu=Cpu(read("aarch64"), read("ARM"), count=read(144), sockets=read(2)),
        os=_bare_metal(services={"nvidia-imex": read("active")}),
        numa=sockets("0-71", "72-143"),
    )
    routes = {pair: Path(PathType.P2C) if way.type is PathType.SYS else way for pair, way in node.paths.items()}
    return replace(node, paths=routes)


@built_once
def l40s_box() -> Node:
    """Four L40S without NVLink, two sockets, one NIC under each socket's switch: healthy."""
    cards = [
        gpu(at, "NVIDIA L40S", 89, at // 2, cpu_affinity=read("0-31" if at < 2 else "32-63")) for at in range(4)
    ]  # fmt: skip
    nics = [nic(at, at, rate=200.0) for at in range(2)]

    def word(a: Any, b: Any) -> str:
        sides = [_number(d) // 2 if isinstance(d, Gpu) else _number(d) for d in (a, b)]
        return "PXB" if sides[0] == sides[1] else "SYS"

    cpu = Cpu(read("x86_64"), read("AuthenticAMD"), read(25), read(17), read("EPYC 9354"), read(64), read(2))
    domains = sockets("0-31", "32-63")
    return assembled("l40s-01", cards, nics, word, gen=4, cpu=cpu, os=_bare_metal(services={}), numa=domains)


@built_once
def flat_vm() -> Node:
    """A guest with eight H100 and eight NICs whose PCI tree lost its switches: GPU to NIC is PHB, speeds unreadable."""
    bare = hgx_h100()
    cells = {
        pair: fact if (fact.value or "").startswith("NV") else replace(fact, value="PHB")
        for pair, fact in bare.smi_matrix.items()
    }
    devices = [*bare.gpus, *bare.nics]
    tree = {
        str(device.bus_id): PciDevice(
            str(device.bus_id),
            class_code=read(0x030200 if isinstance(device, Gpu) else 0x020700),
            root="pci0000:00",
            numa=read(-1),
            gen=Fact(why="Unknown"),
            width=read(0),
        )
        for device in devices
    }
    return replace(
        bare,
        host="vm-001",
        os=replace(bare.os, virtualization=read("kvm"), services={}),
        gpus=tuple(replace(card, numa=read(-1)) for card in bare.gpus),
        nics=tuple(replace(card, numa=read(-1)) for card in bare.nics),
        pci=tree,
        paths=paths(cells),
        smi_matrix=cells,
        topics=bare.topics | {Topic.SETTINGS, Topic.RDMA_DEVICES},
    )


@built_once
def t4_node() -> Node:
    """One T4 and no RDMA: a node on which most checks have nothing to say."""
    return Node(
        "t4-01",
        os=_bare_metal(services={}, peermem=read(False), modules=read(frozenset({"nvidia"}))),
        numa=sockets("0-15"),
        gpus=(gpu(0, "Tesla T4", 75, 0, cpu_affinity=read("0-15")),),
    )


HEALTHY = (hgx_h100, dgx_a100, dgx1_v100, gb200_tray, l40s_box, t4_node)


def with_gpu(node: Node, index: int, **changes: Any) -> Node:
    """The node with one GPU's facts changed."""
    return replace(node, gpus=tuple(replace(g, **changes) if g.index == index else g for g in node.gpus))


def with_gpus(node: Node, **changes: Any) -> Node:
    return replace(node, gpus=tuple(replace(g, **changes) for g in node.gpus))


def with_os(node: Node, **changes: Any) -> Node:
    return replace(node, os=replace(node.os, **changes))


def with_words(node: Node, said: Callable[[str, str], str | None]) -> Node:
    """The node with words of the matrix (and their paths) changed where `said` has another; "" removes the cell."""
    cells = dict(node.smi_matrix)
    for pair in list(cells):
        text = said(*pair)
        if text == "":
            del cells[pair]
        elif text is not None:
            cells[pair] = Fact(text, Origin("topo-m", 2, text))
    kept = {pair: path for pair, path in node.paths.items() if cells.get(pair) == node.smi_matrix.get(pair)}
    changed = {pair: fact for pair, fact in cells.items() if fact != node.smi_matrix.get(pair)}
    return replace(node, smi_matrix=cells, paths={**kept, **paths(changed)})


def between_gpus(node: Node, text: str, *gpus: str) -> Node:
    """The node with another word between all GPUs, between one and the others, or between two."""
    return with_words(node, lambda a, b: text if "mlx5" not in a + b and {*gpus} <= {a, b} else None)


def to_nics(node: Node, text: str, *labels: str) -> Node:
    """The node with another word between NICs and all devices, or between NICs and one GPU."""
    return with_words(node, lambda a, b: text if "mlx5" in a + b and {*labels} <= {a, b} else None)


def bare_matrix(node: Node) -> Node:
    """Only what `nvidia-smi topo -m` tells: labels, the matrix and affinities; no names, no links, no system."""
    cards = tuple(Gpu(g.index, numa=g.numa, cpu_affinity=g.cpu_affinity) for g in node.gpus)
    cells = node.smi_matrix
    nics = tuple(Nic(n.name, rdma_name=n.rdma_name, smi_label=n.smi_label, role=n.role) for n in node.nics)
    return Node(node.host, gpus=cards, nics=nics, smi_matrix=cells, paths=paths(cells))


def status(outcome: Outcome) -> str:
    """The status by name, for short assertions."""
    return outcome.status.value


def only(outcome: Outcome) -> Any:
    """The one finding of an outcome."""
    assert outcome.status is Status.FINDING, (outcome.status, outcome.why)
    assert len(outcome.findings) == 1, [finding.message for finding in outcome.findings]
    return outcome.findings[0]
