"""Prints how far the model's paths agree with NCCL's own, on the topology files of the corpus.

    python benchmarks/path_agreement.py [FOLDER]        default ../shared/corpus/topo

For each file that NCCL 2.28 accepted, the links are built by NCCL's rules for its XML (src/graph/topo.cc) and the
model's path between every two GPUs and from every GPU to every NIC is held against NCCL's: type, and GB/s. Files
whose machine the model does not describe are left out, with the reason. Where NCCL says NET it has decided that the
network is faster between two GPUs than shared memory: a choice on top of the path, which the model does not make.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as File
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import fromstring

from topodiag.hardware import catalog
from topodiag.model.links import Link, LinkKind, Path
from topodiag.model.paths import edges_of_ways, nic_paths, paths_from, way_of
from topodiag.model.provenance import Fact

CORPUS = File(__file__).resolve().parents[2] / "shared" / "corpus" / "topo"
VERSION = "2.28"

OUTSIDE = {
    "x_net_gdr0.xml": "the file says gdr=0: NCCL leads every NIC path through the CPU",
    "x_no_net_port_lat_maxconn_gdr.xml": "no gdr in the file: the same",
    "x_no_net_dev.xml": "no dev in the file: NCCL numbers the NICs itself",
    "x_duplicate_busid.xml": "two GPUs with one bus id",
    "gen014.xml": "an NVLink of count 0",
    "gen025.xml": "an NVLink of count 0",
    "gen035.xml": "an NVLink of count 0",
}

SPEEDS = (
    ("2.5 GT/s", 15), ("5 GT/s", 30), ("8 GT/s", 60), ("16 GT/s", 120), ("32 GT/s", 240), ("5.0 GT/s PCIe", 30),
    ("8.0 GT/s PCIe", 60), ("16.0 GT/s PCIe", 120), ("32.0 GT/s PCIe", 240), ("64.0 GT/s PCIe", 480),
)  # fmt: skip
ARCH = {"x86_64": "x86_64", "arm64": "aarch64", "ppc64": "ppc64le"}


@dataclass
class Machine:
    """A topology file as links between vertices; widths of equal links add up, as NCCL's do."""

    widths: dict[tuple[str, str, LinkKind], float] = field(default_factory=dict)
    gpus: dict[str, Element] = field(default_factory=dict)
    cpu_of: dict[str, str] = field(default_factory=dict)
    nics: list[str] = field(default_factory=list)

    def add(self, a: str, b: str, kind: LinkKind, gbs: float) -> None:
        key = (min(a, b), max(a, b), kind)
        self.widths[key] = self.widths.get(key, 0.0) + gbs

    def links(self) -> list[Link]:
        return [Link(a, b, kind, 1, Fact(gbs), Fact(gbs)) for (a, b, kind), gbs in self.widths.items()]


def read(root: Element) -> Machine:
    made = Machine()
    cpus = root.findall("cpu")
    for cpu in cpus:
        vertex = f"cpu:{cpu.get('numaid')}"
        for pci in cpu.findall("pci"):
            _pci(made, pci, vertex, vertex)
        for nic in cpu.findall("nic"):
            _nets(made, nic, vertex, 5000.0)
    for place, one in enumerate(cpus):
        for other in cpus[place + 1 :]:
            gbs = catalog.smp_gbs(
                ARCH.get(one.get("arch", ""), ""),
                one.get("vendor") or "",
                int(one.get("familyid") or 0),
                int(one.get("modelid") or 0),
            )
            made.add(f"cpu:{one.get('numaid')}", f"cpu:{other.get('numaid')}", LinkKind.SMP, gbs)
    _gpu_links(made)
    return made


def _pci(made: Machine, pci: Element, parent: str, cpu: str) -> None:
    bus_id = pci.get("busid", "")
    value = next((v for text, v in SPEEDS if (pci.get("link_speed") or "").startswith(text)), 60)
    gbs = (int(pci.get("link_width") or 0) or 16) * value / 80
    gpu, nic = pci.find("gpu"), pci.find("nic")
    if gpu is not None:
        made.gpus[bus_id], made.cpu_of[bus_id] = gpu, cpu
        made.add(f"gpu:{bus_id}", parent, LinkKind.PCIE, gbs)
    elif nic is not None:
        _nets(made, nic, parent, gbs)
    elif (pci.get("class") or "").startswith("0x0604"):
        made.add(f"pci:{bus_id}", parent, LinkKind.PCIE, gbs)
        for child in pci.findall("pci"):
            _pci(made, child, f"pci:{bus_id}", cpu)


def _nets(made: Machine, nic: Element, parent: str, gbs: float) -> None:
    for net in nic.findall("net"):
        vertex = f"nic:{net.get('dev')}"
        made.nics.append(vertex)
        made.add(vertex, parent, LinkKind.PCIE, min(gbs, (float(net.get("speed") or 0) or 10000) / 8000))


def _gpu_links(made: Machine) -> None:
    one_way: dict[tuple[str, str], float] = {}
    for bus_id, gpu in made.gpus.items():
        rate = catalog.nvlink_nccl_gbs(int(gpu.get("sm") or 90))
        for link in gpu.findall("nvlink"):
            kind, target = link.get("tclass") or "0x068000", link.get("target", "")
            far = made.cpu_of[bus_id] if kind.startswith("0x068001") else "nvs:0"
            if kind.startswith("0x03"):
                far = f"gpu:{target}"
                if target not in made.gpus:
                    continue
            key = (f"gpu:{bus_id}", far)
            one_way[key] = one_way.get(key, 0.0) + int(link.get("count") or 0) * rate
        for link in gpu.findall("c2c"):
            gbs = float(link.get("bw") or 0) * int(link.get("count") or 0) / 1000
            made.add(f"gpu:{bus_id}", made.cpu_of[bus_id], LinkKind.C2C, gbs)
    for (a, b), gbs in one_way.items():
        made.widths[min(a, b), max(a, b), LinkKind.NVLINK] = gbs


@dataclass(frozen=True)
class Comparison:
    """One pair: what NCCL says and what the model says."""

    file: str
    a: str
    b: str
    theirs: tuple[str, float]
    ours: tuple[str, float]

    @property
    def same_type(self) -> bool:
        return self.theirs[0] == self.ours[0]

    @property
    def same_width(self) -> bool:
        return abs(self.theirs[1] - self.ours[1]) < 0.1


def compare(folder: File = CORPUS) -> Iterator[Comparison]:
    """Every GPU-GPU pair of the one-node runs and every GPU-NIC pair of the two-node runs (one node needs no NIC)."""
    for file in sorted(folder.glob("*.xml")):
        truth = json.loads(gzip.decompress(file.with_suffix(".truth.json.gz").read_bytes()))[VERSION]
        if file.name in OUTSIDE or not (truth["1"].get("accepted") and truth["1"].get("paths")):
            continue
        machine = read(fromstring(file.read_text()))
        edges = edges_of_ways(map(way_of, machine.links()))
        table = {f"gpu:{bus_id}": paths_from(f"gpu:{bus_id}", edges) for bus_id in machine.gpus}
        order = {f"gpu:{bus_id}": int(gpu.get("dev") or at) for at, (bus_id, gpu) in enumerate(machine.gpus.items())}
        to_nics = nic_paths(order, machine.nics, table)
        names = {f"GPU/0-{_packed(bus_id)}": f"gpu:{bus_id}" for bus_id in machine.gpus}
        for nodes, prefix in (("1", "GPU/"), ("2", "NET/")):
            rows = truth.get(nodes, {}).get("paths") or {}
            for a, row in rows.items():
                for b, (_, gbs, kind) in row.items():
                    if a not in names or not b.startswith(prefix):
                        continue
                    path: Path | None
                    if prefix == "GPU/":
                        path = table[names[a]].get(names.get(b, ""))
                    else:
                        path = to_nics.get((names[a], f"nic:{int(b.rpartition('-')[2], 16)}"))
                    ours = (path.type.name, path.negotiated_gbs or 0.0) if path else ("none", 0.0)
                    yield Comparison(file.name, a, b, (kind, gbs), ours)


def _packed(bus_id: str) -> str:
    return f"{int(bus_id.replace(':', '').replace('.', ''), 16):x}"


def main() -> None:
    folder = File(sys.argv[1]) if len(sys.argv) > 1 else CORPUS
    tally: Counter[tuple[str, str]] = Counter()
    misses = []
    for each in compare(folder):
        kind = "GPU-GPU" if each.b.startswith("GPU") else "GPU-NIC"
        tally[kind, "pairs"] += 1
        tally[kind, "type"] += each.same_type
        tally[kind, "GB/s"] += each.same_width
        if not (each.same_type and each.same_width):
            misses.append(each)
    print(f"{'NCCL ' + VERSION:10} {'pairs':>7} {'same type':>10} {'same GB/s':>10}")
    for kind in ("GPU-GPU", "GPU-NIC"):
        print(f"{kind:10} {tally[kind, 'pairs']:7} {tally[kind, 'type']:10} {tally[kind, 'GB/s']:10}")
    for each in misses:
        print(f"miss {each.file} {each.a} {each.b}: NCCL {each.theirs}, ours {each.ours}")
    for name, why in OUTSIDE.items():
        print(f"left out {name}: {why}")


if __name__ == "__main__":
    main()
