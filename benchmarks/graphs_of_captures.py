"""Prints how the graphs of jobs stand to those that NCCL would find on captures of their machines, a line each.

    python benchmarks/graphs_of_captures.py [FOLDER ...]      default: fixtures/incidents and the corpus' incidents

A folder holds folders, each the evidence of one event. Of a folder without captures, whose jobs lie beside the topology
file of their hardware (the corpus' `jobs`), that file is the capture: NCCL itself wrote those logs on it.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.checks.jobs import connections
from topodiag.app.case.build import open_case
from topodiag.checks.network.captured_search import Searched, gap_of, searched_on_captures
from topodiag.checks.network.channels import explained_by
from topodiag.checks.shared.job.logs import multi_node
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.devices import Gpu
from topodiag.model.errors import TopodiagError
from topodiag.model.job import Channels, Communicator, Hca, Job, Process, Rank
from topodiag.model.nccl_view import Graph, NcclSystem
from topodiag.model.node import Node
from topodiag.model.provenance import known
from topodiag.nccl.topo.changes import bus_of, gpus_of, nets_of

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "fixtures" / "incidents", ROOT.parent / "shared" / "corpus" / "incidents")


def on_file(job: Job, folder: Path) -> Job:
    """The job with the file of its hardware as the capture of each of its hosts."""
    path = next((each for each in folder.glob("*.xml") if each.name != "graph.xml"), None)
    if path is None or any(event.kind == "topology" for event in job.events):
        return job
    given = (setting for process in job.processes for setting in process.settings.values())
    loaded = next((setting.value for setting in given if setting.name == "NCCL_TOPO_FILE"), path.name)
    path = folder / Path(loaded).name
    if not path.exists():
        return job
    node = machine(path)
    processes = tuple(
        replace(
            process,
            messages=tuple(message for message in process.messages if message.kind != "topo file"),
            settings={name: value for name, value in process.settings.items() if name != "NCCL_TOPO_FILE"},
        )
        for process in job.processes
    )
    return replace(job, processes=processes, machines=dict.fromkeys(job.hosts, node))


def machine(path: Path) -> Node:
    file = read_file(path.read_bytes(), path.name)
    gpus = tuple(
        Gpu(number, bus_of(pci), nvlink_note=known("as the file says")) for number, pci in gpus_of(file.tree).items()
    )
    return Node(path.stem, nccl_file=file, gpus=gpus)


def communicators(folder: Path) -> Iterator[tuple[str, Job]]:
    """Jobs made of the answers of full communicators (`topo2`)."""
    for path in sorted(folder.glob("*.xml")):
        node = machine(path)
        truth = json.loads(gzip.decompress(path.with_name(f"{path.stem}.truth.json.gz").read_bytes()))
        for key, said in truth.items():
            version, _, nodes = key.partition("/")
            if not said["accepted"] or said.get("comm", [0, 0])[1] != int(nodes):
                continue
            hosts = tuple(f"n{number}" for number in range(int(nodes)))
            buses = [gpu.bus_id or "" for gpu in node.gpus]
            ranks = tuple(
                Rank(at, hosts[at // len(buses)], at, bus_id=buses[at % len(buses)], process=at)
                for at in range(len(buses) * len(hosts))
            )
            assert node.nccl_file is not None
            names = nets_of(node.nccl_file.tree)
            hcas = tuple(Hca(number, name) for number, name in enumerate(names))
            processes = tuple(Process(rank.host, rank.pid, {"nccl": version}, "IB", hcas) for rank in ranks)
            graphs = tuple(
                Graph(**{**graph, "orders": (), "same_channels": bool(graph["same_channels"])})
                for graph in said["graphs"]
            )
            world = Communicator(
                0,
                len(ranks),
                np.arange(len(ranks)),
                nodes=len(hosts),
                hosts=hosts,
                channels=Channels(*said["channels"]),
                systems={hosts[0]: NcclSystem()},
                graphs={hosts[0]: graphs},
            )
            job = Job(
                key,
                len(ranks),
                ranks,
                processes,
                (world,),
                connections([], hosts, 8),
                hosts,
                (version,),
                machines=dict.fromkeys(hosts, node),
            )
            yield path.stem, job


def compared(job: Job) -> tuple[str, str]:
    """`agree`, `contradicts`, `explained` or `unknown`, and both sources or the reason."""
    across = multi_node(job)
    if why := explained_by(job, across):
        return "explained", why
    beside = searched_on_captures(job, across=across)
    if not isinstance(beside, Searched):
        return "unknown", beside
    world = job.world
    gap = gap_of(job, beside, across=across)
    ring = beside.prediction.graph(0)
    if gap is None:
        graphs = [graph for each in (world.graphs.values() if world else ()) for graph in each if graph.pattern == 4]
        same = ring is not None and all(
            (graph.channels, graph.bw_intra) == (ring.channels, ring.bw_intra) for graph in graphs
        )
        return "agree", f"{len(graphs)} rings of hosts" + ("" if same else ", not the very same")
    return "contradicts", f"{', '.join(gap.hosts)}: {gap.logged}; {beside.source}: {gap.predicted}; {gap.cost}"


def evidence_of(path: Path) -> list[str]:
    """All of a folder but its truth, and the file of the hardware that no job would have beside its log."""
    return [str(each) for each in sorted(path.iterdir()) if each.suffix != ".xml" and "truth" not in each.name]


def jobs(folder: Path) -> Iterator[tuple[str, Job]]:
    """Each job of a folder of events, by the name of its event."""
    yield from communicators(folder)
    for path in sorted(each for each in folder.iterdir() if each.is_dir()):
        try:
            found = open_case(evidence_of(path)).jobs
        except TopodiagError as error:
            print(f"{'unread':12} {path.name:36} {error}")
            continue
        for job in found:
            yield path.name, job if job.machines else on_file(job, path)


def main(folders: list[Path]) -> None:
    counts: Counter[str] = Counter()
    for name, job in (each for folder in folders for each in jobs(folder)):
        word, why = compared(job) if job.machines else ("no capture", "")
        counts[word] += 1
        if why:
            print(f"{word:12} {name:36} {job.name[:24]:24} {why}")
    print("  ".join(f"{word} {count}" for word, count in counts.most_common()))


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]] or [each for each in FOLDERS if each.exists()])
