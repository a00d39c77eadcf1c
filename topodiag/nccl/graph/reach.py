"""How NCCL corrects the paths for what the hardware can do: P2P and shared memory, GPUDirect RDMA, PXN, C2C.

After ncclTopoComputePaths, ncclTopoCheckP2p, ncclTopoCheckNet and ncclTopoCheckGdr (src/graph/paths.cc). P2P and
GPUDirect are taken as working where they are supported: only NCCL's own rules and the settings take them away.
"""

from __future__ import annotations

from topodiag.model.nccl_versions import Feature, path_types
from topodiag.nccl.graph.bandwidths import ARM, INTEL, ROME_CORNER, X86, ZHAOXIN, is_amd, is_rome
from topodiag.nccl.graph.graph import Path, RejectedError, System, Vertex
from topodiag.nccl.graph.nearest import local_cpu, local_gpu, nearest, row
from topodiag.nccl.graph.paths import set_paths
from topodiag.nccl.numbers import bus_id
from topodiag.nccl.settings import Settings

_AMPERE = 80


def compute_paths(system: System, settings: Settings) -> None:
    """All paths of a system as its GPUs may use them, and the GPU of every NET. Raises RejectedError as set_paths."""
    set_paths(system, settings)
    level = p2p_level(system, settings)
    for target in range(len(system.gpus)):
        _divert_unreachable(system, target, level)
        _mark_network_only(system, target, level, settings)
    if system.has(Feature.P2C):
        _mark_c2c(system)
    policy = settings.values.get("NCCL_NETDEVS_POLICY", "")
    system.scattered = settings.values.get("NCCL_TOPO_SCATTER_START_NET", "0").strip() not in ("", "0")
    known: dict[int, list[int]] = {}
    for net in system.nets:
        # looked up anew after every change of a path, on which it depends
        proxy: int | None = None
        for gpu in system.gpus:
            if proxy is None and not settings.pxn_disable:
                proxy = local_gpu(system, net.index, policy, known)
            changed = proxy is not None and _use_pxn(system, gpu, net, proxy, settings)
            if _divert_without_gdr(system, gpu, net, settings) or changed:
                proxy = None
                known.clear()
    for net in system.nets:
        net.local_gpu = local_gpu(system, net.index, policy, known)


def merged_type(system: System, one: int, other: int) -> int:
    """The type of two paths in a row: the greater, but P2C for C2C and PHB."""
    types = path_types(system.minor)
    if system.has(Feature.P2C) and max(one, other) == types.phb and min(one, other) == types.c2c:
        return types.p2c
    return max(one, other)


def p2p_level(system: System, settings: Settings) -> int:
    """The greatest path type over which two GPUs talk directly (ncclTopoCheckP2p)."""
    if settings.p2p_level is not None:
        return settings.p2p_level
    types = path_types(system.minor)
    if not system.cpus:
        return types.pxb
    cpu = system.cpus[0]
    if system.has(Feature.P2P_ON_SMALL_AMD):
        devices = len(system.nodes["DEV"]) if system.has(Feature.GPU_DEVICES) else len(system.gpus)
        return types.sys if is_amd(cpu) and devices <= 2 else types.pxb
    if cpu.arch == ARM or (cpu.arch == X86 and cpu.vendor in (INTEL, ZHAOXIN)):
        return types.pxb
    return types.sys


def gdr_possible(system: System, gpu: Vertex, net: Vertex, read: bool, settings: Settings) -> bool:
    """Whether a NIC reads (`read`) or writes a GPU's memory directly, over the path as it is (ncclTopoCheckGdr)."""
    if net.gdr == 0 or gpu.gdr == 0:
        return False
    types = path_types(system.minor)
    if read and not system.rccl and not _read_possible(system, gpu, settings):
        return False
    level = types.pxb
    if system.has(Feature.GDR_UP_TO_P2C) and settings.net_gdr_c2c:
        level = types.p2c
    if settings.gdr_level is not None:
        level = settings.gdr_level
    elif system.rccl and _same_corner(system, gpu, net):
        level = types.phb
    distance = row(gpu, "NET")[net.index].type
    if distance == types.pxn:
        gpu = pxn_proxy(system, gpu, net)
        distance = row(gpu, "NET")[net.index].type
    if settings.net_gdr_c2c and system.has(Feature.GDR_OVER_C2C):
        named = system.has(Feature.P2C)
        c2c_cpu = not named and row(gpu, "CPU")[local_cpu(system, gpu.index)].type == types.c2c
        if (c2c_cpu and distance == types.phb) or (named and distance == types.p2c):
            distance = types.c2c
    return distance <= level


def _same_corner(system: System, gpu: Vertex, net: Vertex) -> bool:
    """Of RCCL: whether GPU and NIC hang from one corner of one Rome CPU, without a switch (ncclTopoCheckGdr)."""
    if not is_rome(system.cpus[0]) or not net.busid:
        return False
    near = [next((cpu.id for cpu in system.cpus if row(one, "CPU")[cpu.index].count == 2), -1) for one in (gpu, net)]
    return near[0] == near[1] != -1 and gpu.id & ROME_CORNER == bus_id(net.busid) & ROME_CORNER


def pxn_proxy(system: System, gpu: Vertex, net: Vertex) -> Vertex:
    """The GPU through which a PXN path goes: the first one after the NVSwitches (ncclTopoGetIntermediateRank)."""
    path = row(gpu, "NET")[net.index]
    if path.type != path_types(system.minor).pxn:
        return gpu
    links = path.links[1:] if system.has(Feature.GPU_DEVICES) else path.links
    node = next((link.remote for link in links if link.remote.kind != "NVS"), None)
    if node is not None and node.kind == "DEV":
        device = node
        node = next((link.remote for link in device.links if link.remote.kind == "GPU"), None)
    if node is None or node.kind != "GPU":
        raise RejectedError(f"Could not find intermediate GPU between GPU rank {gpu.rank} and NIC {net.id:x}")
    return node


def net_better(system: System, one: Vertex, other: Vertex, settings: Settings) -> bool:
    """Whether two GPUs would rather talk over the network than over P2P or shared memory (ncclTopoCheckNet)."""
    if settings.net_disable_intra:
        return False
    speed = row(one, "GPU")[other.index].bw
    pxb = path_types(system.minor).pxb
    return all(
        max((path.bw for path in vertex.paths.get("NET", ()) if path.type <= pxb), default=0.0) > speed
        for vertex in (one, other)
    )


def _read_possible(system: System, gpu: Vertex, settings: Settings) -> bool:
    """Reads only where no other PCI traffic is hurt: before Ampere (once always) with NVLink or one GPU only."""
    parameter = -2 if settings.net_gdr_read is None else settings.net_gdr_read
    if parameter == 0:
        return False
    if parameter > 0 or (system.has(Feature.GDR_READ_FROM_AMPERE) and gpu.sm >= _AMPERE) or len(system.gpus) == 1:
        return True
    nvl = path_types(system.minor).nvl
    return any(path.type == nvl for index, path in enumerate(row(gpu, "GPU")) if index != gpu.index)


def _divert(system: System, source: Vertex, via: Vertex, target: Vertex) -> None:
    """Sends a path over another vertex (addInterStep)."""
    first = row(source, via.kind)[via.index]
    second = row(via, target.kind)[target.index]
    path = row(source, target.kind)[target.index]
    kind = path_types(system.minor).pxn if via.kind == "GPU" else merged_type(system, first.type, second.type)
    path.links = first.links + second.links
    path.count = first.count + second.count
    path.bw = min(first.bw, second.bw)
    path.type = kind


def _divert_unreachable(system: System, target: int, level: int) -> None:
    """Paths to a GPU without P2P go over the CPU nearest to it."""
    gpu = system.gpus[target]
    for source in system.gpus:
        if row(source, "GPU")[target].type > level:
            _divert(system, source, system.cpus[local_cpu(system, target)], gpu)


def _mark_network_only(system: System, target: int, level: int, settings: Settings) -> None:
    """GPUs that reach each other neither by P2P nor by shared memory are apart: their path type is NET."""
    gpu = system.gpus[target]
    for source in system.gpus:
        if source is gpu:
            continue
        path = row(source, "GPU")[target]
        p2p = path.type <= level
        if p2p and _intermediate(system, path):
            continue
        better = net_better(system, source, gpu, settings)
        shm = not better and not settings.shm_disable and source.system_id == gpu.system_id
        if not ((p2p and not better) or shm):
            path.type = path_types(system.minor).net


def _intermediate(system: System, path: Path) -> bool:
    """Whether a path goes through another GPU."""
    if not system.has(Feature.GPU_DEVICES):
        return path.count == 2 and len(path.links) == 2 and path.links[0].remote.kind == "GPU"
    if not (path.count == 4 and len(path.links) == 4 and path.links[1].remote.kind == "DEV"):
        return False
    device = path.links[1].remote
    if not any(gpu.dev == device.dev and gpu.system_id == device.system_id for gpu in system.gpus):
        raise RejectedError(
            f"ncclTopoDevToRank could not find rank for nvml dev {device.dev} in systemId {device.system_id}"
        )
    return True


def _mark_c2c(system: System) -> None:
    """A NIC below the CPU of a GPU with C2C is reached over C2C (P2C). With P2C_FOR_NEAREST_NETS only those nearest to
    the GPU are; for others PXN is better."""
    p2c, nearest_only = path_types(system.minor).p2c, system.has(Feature.P2C_FOR_NEAREST_NETS)
    for gpu in system.gpus:
        for index in nearest(system, gpu, "NET")[0] if nearest_only else range(len(system.nets)):
            net, cpu = system.nets[index], local_cpu(system, gpu.index)
            if merged_type(system, row(gpu, "CPU")[cpu].type, row(net, "CPU")[cpu].type) == p2c:
                for path in (row(gpu, "NET")[index], row(net, "GPU")[gpu.index]):
                    path.type = min(p2c, path.type)


def _use_pxn(system: System, gpu: Vertex, net: Vertex, proxy_index: int, settings: Settings) -> bool:
    """A GPU sends to a NIC over the GPU nearest to it, where NVLink leads there and it is faster or avoids CPUs.

    Whether it does.
    """
    if proxy_index in (-1, gpu.index):
        return False
    types = path_types(system.minor)
    proxy = system.gpus[proxy_index]
    there, direct = row(proxy, "NET")[net.index], row(gpu, "NET")[net.index]
    if there.type > (types.p2c if settings.pxn_c2c and system.has(Feature.P2C) else types.pxb):
        return False
    if row(proxy, "GPU")[gpu.index].type > types.nvl or proxy.system_id != gpu.system_id:
        return False
    if there.bw <= direct.bw and direct.type <= (types.pxn if system.has(Feature.P2C) else types.pxb):
        return False
    if system.has(Feature.PXN_NEEDS_GDR) and not gdr_possible(system, proxy, net, True, settings):
        return False
    _divert(system, gpu, proxy, net)
    return True


def _divert_without_gdr(system: System, gpu: Vertex, net: Vertex, settings: Settings) -> bool:
    """Without GPUDirect RDMA both directions go over the CPU nearest to the GPU; before GDR_LEAVES_CPU_PATHS
    whatever the path.

    Whether they do.
    """
    if system.has(Feature.GDR_LEAVES_CPU_PATHS) and row(gpu, "NET")[net.index].type >= path_types(system.minor).phb:
        return False
    if gdr_possible(system, gpu, net, False, settings):
        return False
    cpu = system.cpus[local_cpu(system, gpu.index)]
    _divert(system, net, cpu, gpu)
    _divert(system, gpu, cpu, net)
    return True
