"""The sets of rings that RCCL knows beforehand (rome_models.toml), and a machine in the same terms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import msgspec

from topodiag.lazy import dataclass
from topodiag.model.nccl_versions import path_types
from topodiag.nccl.graph.bandwidths import xgmi_bandwidth
from topodiag.nccl.graph.graph import System, Vertex
from topodiag.words.own_data import own_data


@dataclass(frozen=True)
class Layout:
    """GPUs by device number and NICs by number: bus numbers, NUMA nodes, links from GPU to GPU, path types from each
    NIC to each GPU, and the pattern of NUMA nodes (rcclRomeModel of src/graph/rome_models.cc)."""

    bus: tuple[int, ...]
    numa: tuple[int, ...]
    nic_numa: tuple[int, ...]
    links: tuple[tuple[int, ...], ...]
    distance: tuple[tuple[str, ...], ...]
    pattern: str
    cpus: int
    most_links: int

    @property
    def gpus(self) -> int:
        return len(self.bus)

    @property
    def nics(self) -> int:
        return len(self.nic_numa)


@dataclass(frozen=True)
class RomeModel(Layout):
    """A known set: the machine that it asks for, and its rings."""

    index: int = -1
    name: str = ""
    rings: tuple[str, ...] = ()
    options: str = ""

    def asks(self, option: str) -> bool:
        return f"{option}=1" in self.options.split(",")


@cache
def rome_models() -> tuple[RomeModel, ...]:
    """All sets, in the order in which RCCL tries them."""
    rows = [
        {
            **row,
            "bus": [int(word, 16) for word in row["bus"].split()],
            "links": [[int(digit) for digit in line] for line in row["links"].split()],
            "distance": [line.split() for line in row["distance"]],
        }
        for row in own_data("nccl/rccl/rome_models")["model"]
    ]
    return msgspec.convert(rows, tuple[RomeModel, ...])


def layout_of(system: System) -> Layout:
    """A system as RCCL compares it with the sets (parseRomeSystem). Its paths have to be there."""
    names = path_types(system.minor).names
    gpus = sorted(system.gpus, key=lambda gpu: gpu.dev)
    nets = sorted(system.nets, key=lambda net: net.dev)
    numa = tuple(_nearest_cpu(system, gpu).id for gpu in gpus)
    nic_numa = tuple(_nearest_cpu(system, net).id for net in nets)
    links = tuple(tuple(_links_to(gpu, dev, system) for dev in range(len(gpus))) for gpu in gpus)
    cpus = sorted(cpu.id for cpu in system.cpus)
    return Layout(
        bus=tuple(gpu.id for gpu in gpus),
        numa=numa,
        nic_numa=nic_numa,
        links=links,
        distance=tuple(tuple(names[gpu.paths["NET"][net.index].type] for gpu in gpus) for net in nets),
        pattern="".join(chr(48 + numa.count(cpu)) + chr(48 + nic_numa.count(cpu)) for cpu in cpus),
        cpus=len(cpus),
        most_links=max((sum(count > 0 for count in row) for row in links), default=0),
    )


def _nearest_cpu(system: System, vertex: Vertex) -> Vertex:
    ways = vertex.paths["CPU"]
    return min(system.cpus, key=lambda cpu: (ways[cpu.index].count, cpu.index))


def _links_to(gpu: Vertex, dev: int, system: System) -> int:
    """xGMI links to the GPU of a device number."""
    nvl = path_types(system.minor).nvl
    link = next((link for link in gpu.links if link.remote.kind == "GPU" and link.remote.dev == dev), None)
    return int(link.bw / xgmi_bandwidth(gpu.gcn)) if link is not None and link.type == nvl else 0


def all_to_all(layout: Layout) -> int:
    """Links between every two GPUs where they are the same number, else 0 (checkAlltoallWidth)."""
    counts = {
        count for row, numbers in enumerate(layout.links) for column, count in enumerate(numbers) if row != column
    }
    return counts.pop() if len(counts) == 1 else 0


def orders_of(rings: Sequence[str], gpus: int, nics: int) -> list[list[int]]:
    """The rings that fit so many GPUs and NICs, as GPUs in their order (parseGraph). One that starts or ends at a NIC
    which is not there is passed over."""
    numbers = []
    for ring in rings:
        words = ring.split()
        order = [int(word) for word in words if not word.startswith("N")]
        named = [int(word[1:]) for word in words if word.startswith("N")]
        if sorted(order) != list(range(gpus)) or len(named) % 2:
            continue
        if named and not (named[0] < nics and named[-1] < nics):
            continue
        numbers.append(order)
    return numbers
