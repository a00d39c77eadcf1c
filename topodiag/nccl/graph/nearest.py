"""Which NIC, GPU and CPU NCCL takes as the nearest ones of each other, over the paths as they are at the moment.

After ncclTopoGetLocal, ncclTopoGetLocalNet, ncclTopoGetLocalGpu (src/graph/topo.cc) and ncclGetLocalCpu
(src/graph/paths.cc).
"""

from __future__ import annotations

from topodiag.model.nccl_versions import MAX_CHANNELS, Feature, path_types
from topodiag.model.paths import mirrored
from topodiag.nccl.graph.graph import Path, RejectedError, System, Vertex

_CONNECTX_8 = (0x15B32100, 0x15B31023)
"""PCI vendor and device: ConnectX-8 as NCCL tells it."""


def row(vertex: Vertex, kind: str) -> list[Path]:
    """The paths to all vertices of a kind. Raises RejectedError for a vertex that no path of that kind ever touched."""
    paths = vertex.paths.get(kind)
    if paths is None:
        if kind == "CPU":
            raise RejectedError(f"Error : could not find CPU close to GPU {vertex.index}")
        raise RejectedError(
            f"Could not find any local path from {vertex.kind.lower()} {vertex.index} to {kind.lower()}."
        )
    return paths


def nearest(system: System, vertex: Vertex, kind: str) -> tuple[list[int], int]:
    """All indices of a kind with the best path from a vertex - highest bandwidth, then lowest type - and that type.

    Hops do not count. Where nothing is connected all are returned, with type DIS; an empty list where no path was
    ever looked for.
    """
    best_type = path_types(system.minor).dis
    best_bw = 0.0
    numbers: list[int] = []
    for index, path in enumerate(vertex.paths.get(kind, ())):
        if path.bw > best_bw or (path.bw == best_bw and path.type < best_type):
            best_bw, best_type = path.bw, path.type
            numbers = [index]
        elif path.bw == best_bw and path.type == best_type:
            numbers.append(index)
    return numbers, best_type


def local_nets(system: System, gpu: int, policy: str = "") -> list[int]:
    """The NETs (indices) that a GPU uses for channels 0, 1, 2, ...; after the last one it starts again.

    `policy` is the value of NCCL_NETDEVS_POLICY: AUTO (also when empty or not understood), ALL or MAX:n.
    Raises RejectedError where the GPU has no path to any NET.
    """
    vertex = system.gpus[gpu]
    nets, _ = nearest(system, vertex, "NET")
    if not nets:
        raise RejectedError(f"Could not find any local path from gpu {gpu} to net.")
    sharing = max(1, len(nearest(system, system.nets[nets[0]], "GPU")[0]))
    if system.has(Feature.RAIL_OF_EVERY_NET):
        return _by_rails(system, vertex.dev, nets, policy, sharing)
    first = vertex.dev % sharing if _shared_in_turn(system, vertex, nets) else vertex.dev
    first = mirrored(first, len(nets))
    per_gpu = _per_gpu(policy, len(nets), -(-len(nets) // sharing))
    return [nets[(first + channel) % len(nets)] for channel in range(per_gpu)]


def _by_rails(system: System, dev: int, nets: list[int], policy: str, sharing: int) -> list[int]:
    """From 2.32 on GPUs share the rails of the nearest NETs, and with a rail all of its planes."""
    place = {net: at for at, net in enumerate(nets)}
    first_of: dict[int, int] = {}
    for net in nets:
        first_of.setdefault(system.nets[net].rail, place[net])
    nets = sorted(nets, key=lambda net: (first_of[system.nets[net].rail], system.nets[net].plane, place[net]))
    starts = [at for at, net in enumerate(nets) if not at or system.nets[net].rail != system.nets[nets[at - 1]].rail]
    rails = len(starts)
    share = -(-rails // sharing)
    first = dev * share % rails if rails & (rails - 1) else mirrored(dev, rails)
    start, end = starts[first], starts[(first + share) % rails] + (len(nets) if first + share >= rails else 0)
    return [nets[(start + channel) % len(nets)] for channel in range(_per_gpu(policy, len(nets), end - start))]


def _shared_in_turn(system: System, gpu: Vertex, nets: list[int]) -> bool:
    if not system.has(Feature.NETS_SHARED_IN_TURN_AT_CX8):
        return system.has(Feature.NETS_SHARED_IN_TURN)
    return system.scattered or (gpu.sm >= 100 and any(system.nets[net].device in _CONNECTX_8 for net in nets))


def local_gpu(system: System, net: int, policy: str = "", known: dict[int, list[int]] | None = None) -> int:
    """The GPU (index) that uses a NET first, -1 where none does. `known` keeps the ids of each GPU's NETs for the next
    NET, as long as no path changes."""
    wanted = system.nets[net].id
    if system.has(Feature.LOCAL_GPU_AMONG_NEAREST):
        gpus, _ = nearest(system, system.nets[net], "GPU")
    else:
        gpus = list(range(len(system.gpus)))
    known = {} if known is None else known
    for gpu in gpus:
        if gpu not in known:
            known[gpu] = [system.nets[index].id for index in local_nets(system, gpu, policy)]
    taken = [known[gpu] for gpu in gpus]
    for channel in range(min(MAX_CHANNELS[system.minor], max((len(ids) for ids in taken), default=0))):
        for gpu, ids in zip(gpus, taken, strict=True):
            if ids[channel % len(ids)] == wanted:
                return gpu
    return -1


def local_cpu(system: System, gpu: int) -> int:
    """The CPU (index) nearest to a GPU. Raises RejectedError where there is none."""
    vertex = system.gpus[gpu]
    paths = row(vertex, "CPU")
    if system.has(Feature.LOCAL_CPU_BY_PATH):
        candidates = nearest(system, vertex, "CPU")[0]
        if not candidates:
            raise RejectedError(f"Error : could not find CPU close to GPU {gpu}")
        return min(candidates, key=lambda index: paths[index].count)
    cpu, fewest = -1, 0
    reached_only = system.has(Feature.UNREACHED_PASSED_OVER)
    for index, path in enumerate(paths):
        # a CPU out of reach, 0 hops away, could be taken
        if (path.count > 0 or not reached_only) and (fewest == 0 or path.count < fewest):
            cpu, fewest = index, path.count
    if cpu == -1:
        raise RejectedError(f"Error : could not find CPU close to GPU {gpu}")
    return cpu


def _per_gpu(policy: str, nets: int, auto: int) -> int:
    if policy.strip().upper() == "ALL":
        return nets
    most = most_nets(policy)
    return auto if most is None else min(most, nets)


def most_nets(policy: str) -> int | None:
    """n where NCCL_NETDEVS_POLICY is MAX:n, None for any other value."""
    text = policy.strip().upper()
    digits = text.removeprefix("MAX:")[:8]
    return int(digits) if text.startswith("MAX:") and digits.isdecimal() and int(digits) > 0 else None


def cpu_above(vertex: Vertex) -> Vertex | None:
    """The first CPU up the PCI links (findLocalCpu, src/graph/topo.cc). A way back is not taken."""
    stack: list[tuple[Vertex, Vertex | None]] = [(vertex, None)]
    seen = set()
    while stack:
        here, before = stack.pop()
        if here.kind == "CPU":
            return here
        if here in seen:
            continue
        seen.add(here)
        ways = [link.remote for link in here.links if link.remote is not before and link.remote.kind in ("PCI", "CPU")]
        stack += [(remote, here) for remote in reversed(ways)]
    return None
