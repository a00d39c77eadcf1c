"""Prints how long NCCL's graph search takes to replay, per version, on the topology files of the corpus.

    python benchmarks/nccl_search.py [VERSION ...]        default 2.27 2.28 2.30

A question is one file on one or two nodes: build the system with its paths, then search rings, trees and NVLS. Times
are of the processor, in seconds; beside them what part went into the system, and the slowest questions.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from topodiag.evidence.nccl_xml import read_file
from topodiag.model.nccl_tree import NcclFile
from topodiag.model.nccl_versions import minor_of
from topodiag.nccl.graph.attach import HostTree, count_gpus
from topodiag.nccl.graph.domains import build_system
from topodiag.nccl.graph.graph import RejectedError
from topodiag.nccl.search.search import search_graphs
from topodiag.nccl.settings import read_settings

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "topo"
SHOWN = 4


@dataclass(frozen=True)
class Timed:
    question: str
    total: float
    system: float


def timed(file: NcclFile, minor: int, nodes: int) -> Timed:
    settings = read_settings({}, minor)
    question = f"{Path(file.name).stem}/{nodes}"
    began = built = time.process_time()
    try:
        ranks = count_gpus(file.tree) * nodes
        system = build_system([HostTree(file.tree)], minor=minor, settings=settings, nranks=ranks, me=0)
        built = time.process_time()
        search_graphs(system, settings)
    except RejectedError:
        question += " (rejected)"
    return Timed(question, time.process_time() - began, built - began)


def main(versions: list[str]) -> int:
    files = [read_file(path.read_bytes(), path.name) for path in sorted(CORPUS.glob("*.xml"))]
    if not files:
        print(f"no corpus at {CORPUS}")
        return 1
    print("version  questions  median s  worst s   sum s  system s  slowest")
    for version in versions:
        minor = minor_of(version)
        asked = [file for file in files if file.refusal(minor) is None]
        times = sorted((timed(file, minor, nodes) for file in asked for nodes in (1, 2)), key=lambda one: one.total)
        total, system = sum(one.total for one in times), sum(one.system for one in times)
        slowest = ", ".join(f"{one.question} {one.total:.2f}" for one in reversed(times[-SHOWN:]))
        print(
            f"2.{minor:<6} {len(times):>9} {times[len(times) // 2].total:>9.3f} {times[-1].total:>8.2f}"
            f" {total:>7.1f} {system:>9.2f}  {slowest}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["2.27", "2.28", "2.30"]))
