"""Prints how far predictions agree with NCCL itself, version by version, over the corpus: every miss is listed.

    python benchmarks/nccl_agreement.py [--topo] [--comms] [--jobs] [NAME ...]     default: all of ../shared/corpus

From topology files (`topo/`, loaded in one piece): accepted or refused with NCCL's words, maxBw and totalBw, type and
bandwidth of every path, the summary of every graph, the order of every channel. From whole communicators on the
hardware of a file (`topo2/`): the same, virtual NICs, nodes, channel counts and the tuning table. From logs of jobs
(`jobs/`): nodes as NCCL counts them, channel counts, graphs of every host, rings, trees, the tuning table within 1 %,
algorithm and protocol by size.
Last, the time of one question: a whole prediction that was not asked before.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.nccl_rings import rings_of, trees_of
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.node import Node
from topodiag.nccl.predict import predict
from topodiag.nccl.prediction import Prediction
from topodiag.nccl.tuning.choice import choose
from topodiag.nccl.tuning.tuning import tuning_table
from topodiag.nccl.tuning.tuning_constants import ALGORITHMS, COLLECTIVES, PROTOCOLS

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "corpus"
KINDS = ("GPU", "CPU", "NET", "NVS")
"""Vertices whose paths are compared; 2.30 prints others too."""
ROUNDED = 0.051
"""Bandwidths are printed with one decimal."""
SPELT = {name.upper(): name for name in (*ALGORITHMS, *PROTOCOLS)} | {
    "COLLNET_DIRECT": "CollNetDirect", "COLLNET_CHAIN": "CollNetChain", "NVLS_TREE": "NVLSTree",
}  # fmt: skip
"""Names of logs as the package spells them."""
SUMMARY = ("pattern", "cross_nic", "channels", "bw_intra", "bw_inter", "type_intra", "type_inter", "same_channels")


@dataclass
class Tally:
    """Per row of the table and version: how many agree of how many, and the misses in words."""

    agree: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    asked: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    misses: list[str] = field(default_factory=list)

    def add(self, row: str, version: str, same: bool, miss: str) -> None:
        self.asked[row, version] += 1
        self.agree[row, version] += same
        if not same:
            self.misses.append(f"{row}: {version} {miss}")

    def draw(self, title: str) -> None:
        rows = list(dict.fromkeys(row for row, _ in self.asked))
        versions = sorted(
            {version for _, version in self.asked}, key=lambda text: [int(part) for part in text.split(".")]
        )
        print(f"{title:32}" + "".join(f"{'NCCL ' + version:>23}" for version in versions))
        for row in rows:
            cells = []
            for version in versions:
                count, of = self.agree[row, version], self.asked[row, version]
                cells.append(f"{count}/{of} {100 * count / of:.2f} %" if of else "-")
            print(f"{row:32}" + "".join(f"{cell:>23}" for cell in cells))
        print(f"{len(self.misses)} misses")
        for miss in self.misses:
            print(f"  miss  {miss}")
        print()


def close(ours: float, theirs: float) -> bool:
    return abs(ours - theirs) <= ROUNDED


def compare_file(tally: Tally, path: Path) -> list[tuple[float, str]]:
    """Every question of one topology file; the seconds of CPU that each took."""
    took = []
    node = Node(path.stem, nccl_file=read_file(path.read_bytes(), path.name))
    truth = json.loads(gzip.decompress(path.with_name(f"{path.stem}.truth.json.gz").read_bytes()))
    for version, nodes, wanted in questions(truth):
        about = f"{path.stem}, {nodes} node{'s' if nodes != 1 else ''}"
        begun = time.process_time()
        made = predict(node, nodes=nodes, version=version, sizes=(), whole="comm" not in wanted)
        took.append((time.process_time() - begun, f"{about}, NCCL {version}"))
        compare_one(tally, version, about, made, wanted)
    return took


def questions(truth: dict[str, Any]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Version, nodes and answer: by version and nodes in `topo`, by `VERSION/NODES` in `topo2`."""
    for key, found in truth.items():
        version, _, nodes = key.partition("/")
        for count, wanted in {nodes: found}.items() if nodes else found.items():
            yield version, int(count), wanted


BARE = "Could not find any local path from gpu 0 to net."
"""Truth of the file alone: a communicator adds the NICs of its plugin, at least the one of sockets, and starts."""


def compare_one(tally: Tally, version: str, about: str, made: Prediction, wanted: dict[str, Any]) -> None:
    if set(wanted.get("warn") or ()) == {BARE}:
        tally.add("bare file loaded with the plugin's NIC", version, made.accepted, f"{about}: {made.why}")
        return
    same = made.accepted == wanted["accepted"]
    tally.add("accepted or refused", version, same, f"{about}: {made.why or 'accepted'}")
    if not made.accepted and wanted.get("warn"):
        words = any(made.why in said or said in made.why for said in wanted["warn"])
        tally.add("NCCL's words", version, words, f"{about}: {made.why!r}, NCCL {wanted['warn']}")
    if not (same and made.accepted):
        return
    system = wanted["system"]
    theirs = tuple(system.values()) if isinstance(system, dict) else tuple(system)
    alike = close(made.max_bw, theirs[0]) and close(made.total_bw, theirs[1])
    tally.add("maxBw and totalBw", version, alike, f"{about}: {(made.max_bw, made.total_bw)}, NCCL {theirs}")
    for start, ends in wanted["paths"].items():
        for end, (hops, gbs, kind) in ends.items():
            if end.startswith(KINDS):
                path = made.paths.get(start, {}).get(end, (-1, -1.0, "none"))
                miss = f"{about} {start} to {end}: {path}, NCCL {(hops, gbs, kind)}"
                tally.add("path: hops and type", version, (path[0], path[2]) == (hops, kind), miss)
                tally.add("path: GB/s", version, close(path[1], gbs), miss)
    tally.add("graphs searched", version, len(made.graphs) == len(wanted["graphs"]), about)
    for ours, graph in zip(made.graphs, wanted["graphs"], strict=False):
        mine, nccls = tuple(getattr(ours, key) for key in SUMMARY), tuple(graph[key] for key in SUMMARY)
        tally.add("graph summary", version, mine == nccls, f"{about}: {mine}, NCCL {nccls}")
        orders = [list(order) for order in ours.orders]
        for at, order in enumerate(graph["orders"]):
            found = orders[at] if at < len(orders) else None
            tally.add("order of a channel", version, found == order, f"{about} channel {at}: {found}, NCCL {order}")
    if "comm" in wanted:
        compare_communicator(tally, version, about, made, wanted)


def compare_communicator(tally: Tally, version: str, about: str, made: Prediction, wanted: dict[str, Any]) -> None:
    """What only a whole communicator decides."""
    ours, theirs = (made.ranks, made.nccl_nodes), tuple(wanted["comm"][:2])
    tally.add("ranks and nodes", version, ours == theirs, f"{about}: {ours}, NCCL {theirs}")
    merged = [[nic.label.partition("-")[2], nic.name, round(nic.gbs * 8000)] for nic in made.virtual_nics]
    nccls = [[f"{int(dev):x}", name, int(mbps)] for dev, name, mbps, ports in wanted["vnics"] if int(ports) > 1]
    tally.add("virtual NICs", version, merged == nccls, f"{about}: {merged}, NCCL {nccls}")
    channels = made.channels
    counts = [getattr(channels, key) for key in ("coll", "collnet", "nvls", "p2p", "p2p_per_peer")]
    tally.add("channel counts", version, counts == wanted["channels"], f"{about}: {counts}, NCCL {wanted['channels']}")
    for collective, algorithms in wanted["tuning"].items():
        for algorithm, protocols in algorithms.items():
            for protocol, logged in protocols.items():
                cell = made.tuning[collective].get(algorithm, {}).get(protocol, (0.0, 0.0))
                # A combination that is off is printed as -1 or 0, and LL128 that is off with its bandwidth.
                off = cell[1] <= 0 and (max(logged) <= 0 or protocol == "LL128")
                same = off or all(abs(a - b) <= max(ROUNDED, 0.01 * b) for a, b in zip(cell, logged, strict=True))
                miss = f"{about} {collective} {algorithm} {protocol}: {cell}, NCCL {logged}"
                tally.add("tuning cell within 1 %", version, same, miss)


def compare_jobs(tally: Tally, names: set[str]) -> None:
    """Every communicator of the jobs, rebuilt from the hardware's file as the tests do it."""
    # The tests' own reading of a job: what goes in from its logs, and how a line is spelt.
    sys.path[:0] = [str(ROOT)]
    from tests.nccl import test_corpus_jobs as jobs  # noqa: PLC0415

    for name in jobs.NAMES:
        if names and name not in names:
            continue
        for case in jobs.cases(name):
            version = f"2.{case.built.minor}"
            for row, same, miss in compare_case(jobs, case):
                tally.add(row, version, same, f"{case.label}: {miss}")


def compare_case(jobs: Any, case: Any) -> Iterator[tuple[str, bool, str]]:
    """(row, whether it agrees, the miss in words) for one communicator."""
    logged, built = case.logged, case.built
    if logged.nodes > 0:
        yield "nodes as NCCL counts", len(built.nodes) == logged.nodes, f"{len(built.nodes)}, NCCL {logged.nodes}"
    mine = jobs.channels(case)
    yield "channel counts", mine == logged.channels, f"{mine}, NCCL {logged.channels}"
    for host, graphs in logged.graphs.items():
        worlds = enumerate(logged.ranks)
        rank = next(index for index, world in worlds if case.job.by_rank[int(world)].host == host)
        found = [jobs.shown(graph, built.minor) for graph in built.node(rank).graphs.values()]
        printed = [jobs.shown(graph, built.minor) for graph in graphs]
        yield "graphs of a host", found == printed, f"{host}: {found}, NCCL {printed}"
    rings = dict(enumerate(rings_of(built)))
    for channel, ring in logged.rings.items():
        yield "ring of a channel", rings.get(channel) == ring, f"channel {channel}: {rings.get(channel)}, NCCL {ring}"
    trees = trees_of(built)
    for channel, pairs in logged.trees.items():
        ups = {rank: trees[channel][rank].up for rank, _ in pairs}
        yield "tree of a channel", ups == dict(pairs), f"channel {channel}: {ups}, NCCL {dict(pairs)}"
    yield from compare_tuning(case)


def compare_tuning(case: Any) -> Iterator[tuple[str, bool, str]]:
    shape, settings = case.built.shape, case.settings
    table = tuning_table(shape, settings)
    for (collective, algorithm, protocol), logged in case.logged.tuning.items():
        cell = table[collective].get(SPELT.get(algorithm.upper(), algorithm), {}).get(SPELT[protocol.upper()], (0, 0))
        same = all(abs(a - b) <= max(ROUNDED, 0.01 * b) for a, b in zip(cell, logged, strict=True))
        yield "tuning cell within 1 %", same, f"{collective} {algorithm} {protocol}: {cell}, NCCL {logged}"
    for choice in case.logged.choices:
        wanted = choice.algorithm.replace("_", "").upper(), choice.protocol.upper()
        found = []
        # 2.21 does not say of which collective, and prints the size as it is looked up.
        for collective in [choice.collective] if choice.collective else COLLECTIVES:
            times = shape.nranks if choice.collective in {"AllGather", "ReduceScatter"} else 1
            made = choose(shape, table, settings, collective, choice.bytes * times)
            found.append((made.algorithm.upper(), made.protocol.upper()) if made is not None else None)
        yield "algorithm and protocol by size", wanted in found, f"{choice.bytes} bytes: {found}, NCCL {wanted}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--topo", action="store_true", help="topology files, loaded in one piece")
    parser.add_argument("--comms", action="store_true", help="topology files, whole communicators")
    parser.add_argument("--jobs", action="store_true", help="jobs")
    parser.add_argument("names", nargs="*", help="files or jobs by name")
    asked = parser.parse_args()
    every = not (asked.topo or asked.comms or asked.jobs)
    if not CORPUS.is_dir():
        sys.exit(f"the corpus is not at {CORPUS}")
    for folder, wanted in (("topo", asked.topo), ("topo2", asked.comms)):
        tally = Tally()
        files = sorted((CORPUS / folder).glob("*.xml")) if wanted or every else []
        chosen = [path for path in files if not asked.names or path.stem in asked.names]
        took = [each for path in chosen for each in compare_file(tally, path)]
        if took:
            tally.draw(f"{len({about.partition(',')[0] for _, about in took})} files of {folder}")
            seconds = [each for each, _ in took]
            worst, about = max(took)
            print(f"one question, CPU time: median {statistics.median(seconds):.3f} s, worst {worst:.2f} s ({about})\n")
    if asked.jobs or every:
        tally = Tally()
        compare_jobs(tally, set(asked.names))
        tally.draw("jobs")


if __name__ == "__main__":
    main()
