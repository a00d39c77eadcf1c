"""Prints what degraded machines of the corpus lose: by NCCL itself, and as the verdict's mends predict it.

    python benchmarks/counterfactual.py

Each machine is taken as it was built, and one cause is put into it by its mend (`topodiag/verdict/pricing`). What the
search then finds must be, to the digit, what NCCL itself found on the degraded file, and without the cause what it
found on the whole one. A machine that the corpus has in its degraded form only is mended by its own siblings: NCCL's
figure of the whole one is then not known (`-`).
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from topodiag.evidence.nccl_xml import read_file
from topodiag.model.finding import Cost, Finding, Severity, Where
from topodiag.model.nccl_tree import Element
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.topo.repair import repair
from topodiag.verdict.pricing.edits import canonical
from topodiag.verdict.pricing.mend import HostGround, Machine
from topodiag.verdict.pricing.registry import mend_of

CORPUS = Path(__file__).resolve().parents[1].parent / "shared" / "corpus" / "topo"
VERSIONS = ("2.27", "2.28", "2.30")
RING = 4
"""NCCL's number of the pattern of rings."""


@dataclass(frozen=True, slots=True)
class Degraded:
    """A degraded machine: its file, that of the whole machine ("" where the corpus has none), and its cause."""

    name: str
    whole: str
    check: str
    gpus: tuple[str, ...] = ()
    nics: tuple[str, ...] = ()


MACHINES = (
    Degraded("dgx_h100_gpu3_12nvl", "dgx_h100", "NVL001", ("GPU3",)),
    Degraded("dgx_h100_gpu3_nonvl", "dgx_h100", "TOP004", ("GPU3",)),
    Degraded("dgx_h100_7nics", "dgx_h100", "NIC001"),
    Degraded("dgx_h100_4nics", "dgx_h100", "NIC005"),
    Degraded("x_net_gdr0", "x_base", "GDR001"),
    Degraded("x_no_gpu_gdr", "x_base", "TOP002"),
    Degraded("x_nic_on_cpu", "x_base", "TOP002"),
    Degraded("x_bad_link_speed", "x_base", "TOP002"),
    Degraded("x_no_net_speed", "x_base", "TOP002"),
    Degraded("x_no_tclass", "x_base", "TOP002"),
    Degraded("x_gpu_and_nic_same_switch_removed", "x_base", "TOP002"),
    Degraded("gen011", "", "NVL001", ("GPU2",)),
    Degraded("gen014", "", "NVL001", ("GPU7",)),
    Degraded("gen019", "", "PCI001", ("GPU2",)),
    Degraded("gen021", "", "NVL001", ("GPU3",)),
    Degraded("gen024", "", "NVL001", ("GPU2",)),
    Degraded("gen034", "", "PCI002", ("GPU2",)),
    Degraded("gen035", "", "NVL001", ("GPU0",)),
    Degraded("gen040", "", "NVL001", ("GPU7",)),
    Degraded("gen048", "", "PCI002", ("GPU0",)),
)


@dataclass(frozen=True, slots=True)
class Row:
    """GB/s of all rings of a node: by NCCL on both files (None: it has no truth), and predicted."""

    machine: Degraded
    version: str
    nodes: int
    nccl_whole: float | None
    nccl_degraded: float | None
    whole: float | None
    degraded: float | None

    @property
    def agrees(self) -> bool:
        """Whether every figure that NCCL gives is the predicted one."""
        pairs = ((self.nccl_whole, self.whole), (self.nccl_degraded, self.degraded))
        told = [(theirs, ours) for theirs, ours in pairs if theirs is not None]
        return self.nccl_degraded is not None and all(
            ours is not None and abs(theirs - ours) < 1e-3 for theirs, ours in told
        )


@cache
def tree_of(name: str) -> Element:
    return canonical(read_file((CORPUS / f"{name}.xml").read_bytes(), name).tree)


@cache
def truth_of(name: str) -> dict[str, Any]:
    return dict(json.loads(gzip.decompress((CORPUS / f"{name}.truth.json.gz").read_bytes())))


def trees_of(machine: Degraded) -> tuple[Element, Element]:
    """The whole machine, and the same with the cause put in by its mend."""
    found = tree_of(machine.name)
    whole = tree_of(machine.whole) if machine.whole else canonical(repair(found).tree)
    host = HostGround(machine.name, Machine(whole), (found,))
    where = Where(gpus=machine.gpus, nics=machine.nics)
    finding = Finding(machine.check, Severity.ERROR, "", "", "", (), where, Cost(share=0.5))
    mend = mend_of(machine.check)
    assert mend is not None
    return whole, mend.inflict(host.built, host, finding).tree


def by_nccl(name: str, version: str, nodes: int) -> float | None:
    """GB/s of the rings that NCCL found; None where it refused the file."""
    found = truth_of(name).get(version, {}).get(str(nodes), {})
    ring = next((graph for graph in found.get("graphs", ()) if graph["pattern"] == RING), None)
    return ring["channels"] * (ring["bw_inter"] if nodes > 1 else ring["bw_intra"]) if ring is not None else None


def predicted(tree: Element, version: str, nodes: int) -> float | None:
    made = predict_tree(tree, nodes=nodes, version=version, sizes=(1 << 30,))
    ring = made.graph(0)
    return ring.channels * (ring.bw_inter if nodes > 1 else ring.bw_intra) if ring is not None else None


def rows(versions: tuple[str, ...] = VERSIONS, counts: tuple[int, ...] = (1, 2)) -> Iterator[Row]:
    for machine in MACHINES:
        whole, degraded = trees_of(machine)
        for version in versions:
            for nodes in counts:
                yield Row(
                    machine,
                    version,
                    nodes,
                    by_nccl(machine.whole, version, nodes) if machine.whole else None,
                    by_nccl(machine.name, version, nodes),
                    predicted(whole, version, nodes),
                    predicted(degraded, version, nodes),
                )


def main() -> int:
    if not CORPUS.is_dir():
        print(f"{CORPUS} is not there", file=sys.stderr)
        return 2
    print("machine                            cause   NCCL   nodes  whole: NCCL  ours  degraded: NCCL  ours  loss")
    made = list(rows())
    for row in made:
        figures = [f"{each:7.1f}" if each is not None else "      -" for each in
                   (row.nccl_whole, row.whole, row.nccl_degraded, row.degraded)]  # fmt: skip
        loss = f"{1 - row.degraded / row.whole:6.1%}" if row.whole and row.degraded is not None else "     -"
        miss = "" if row.agrees else "   MISS"
        print(
            f"{row.machine.name:34} {row.machine.check}  {row.version}  {row.nodes}  {'  '.join(figures)}  {loss}{miss}"
        )
    told = sum(row.agrees for row in made)
    print(f"{told} of {len(made)} agree, {len({row.machine.name for row in made})} machines")
    return 0 if told == len(made) else 1


if __name__ == "__main__":
    sys.exit(main())
