"""What the checks of topology files share: the file or why there is none, the machine it is for, NCCL's own verdict.

Decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from topodiag.checks.shared.topo_file import alone
from topodiag.model.busid import normalise_bus_id
from topodiag.model.finding import Cost
from topodiag.model.nccl_tree import Element, NcclFile, Refusal, first_host
from topodiag.model.nccl_versions import DEFAULT, spell_version
from topodiag.model.nccl_view import Graph
from topodiag.model.node import Node
from topodiag.nccl.graph.attach import count_gpus
from topodiag.nccl.graph.graph import RejectedError
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.prediction import PredictedGraph, Prediction
from topodiag.nccl.search.searched import first_system, surely_searched
from topodiag.nccl.settings import read_settings
from topodiag.words.units import in_gbs, plural

ASKED = DEFAULT
"""The version whose search is asked where nobody named one: the reference of all rules here."""

PRICED_BYTES = 1 << 30
"""The all-reduce that is priced."""


def unset_file(node: Node) -> tuple[tuple[str, str | None], ...]:
    """What taking the file away means for the settings of a node that has it in them."""
    return (("NCCL_TOPO_FILE", None),) if any(s.name == "NCCL_TOPO_FILE" for s in node.settings) else ()


def machine_of(node: Node) -> Node | None:
    """The machine that the file is for: the one it is held against, else the node that it was captured on."""
    file = node.nccl_file
    if file is None or file.against is not None:
        return file.against if file is not None else None
    return None if alone(node) else replace(node, nccl_file=None)


def devices_of(tree: Element) -> tuple[dict[str, str], tuple[str, ...]]:
    """GPUs of the first host of a file by bus id with their compute capability ("" where it gives none), and the names
    of its NICs; a display function without `<gpu>` is a place that NCCL fills in."""
    gpus: dict[str, str] = {}
    nics: dict[str, None] = {}
    for cpu in first_host(tree):
        for element in cpu.walk():
            if element.tag == "pci":
                inside = element.having("gpu")
                bare = (element.get("class") or "").startswith("0x03") and element.get("vendor") in (None, "0x10de")
                bus_id = normalise_bus_id(element.get("busid") or "")
                if bus_id is not None and (inside or bare):
                    gpus.setdefault(bus_id, (inside[0].get("sm") or "") if inside else "")
            elif element.tag == "net" and element.get("name"):
                for part in (element.get("name") or "").split("+"):
                    nics.setdefault(part)
    return gpus, tuple(nics)


def refusal_of(file: NcclFile, tree: Element, minor: int) -> Refusal | None:
    """Why NCCL 2.`minor` does not take the file on one node: its reader's words, else those by which it does not build
    the system of `tree`. None where it takes it, and where the tree names no GPU."""
    refusal = file.refusal(minor)
    if refusal is not None or not tree.holds("gpu"):
        return refusal
    try:
        first_system(tree, count_gpus(tree), minor=minor, settings=read_settings({}, minor))
    except RejectedError as rejected:
        return Refusal("structure", rejected.words, rejected.line, 0, "", minor, minor)
    return None


def search_refusal_of(tree: Element, minor: int) -> Refusal | None:
    """Why the search of NCCL 2.`minor` gives up on a tree whose first system it builds; None where it does not, which
    is searched for only where the systems leave it open."""
    try:
        if surely_searched(tree, count_gpus(tree), minor=minor, settings=read_settings({}, minor)):
            return None
    except RejectedError as rejected:
        return Refusal("search", rejected.words, rejected.line, 0, "", minor, minor)
    prediction = ask(tree, minor)
    if prediction is None or prediction.accepted:
        return None
    return Refusal("search", prediction.why, prediction.line, 0, "", minor, minor)


def ask(tree: Element, minor: int, nodes: int = 1, env: Mapping[str, str] | None = None) -> Prediction | None:
    """NCCL's decisions; None where there is no GPU to decide about, which NCCL fills in from the machine."""
    if not tree.holds("gpu"):
        return None
    return predict_tree(tree, nodes=nodes, version=spell_version(minor), env=env, sizes=(PRICED_BYTES,))


def ring_gbs(ring: Graph | PredictedGraph | None, across: bool) -> float:
    """What the rings of a search carry together, GB/s; `across`: to other nodes too."""
    if ring is None:
        return 0.0
    return ring.channels * (min(ring.bw_intra, ring.bw_inter) if across else ring.bw_intra)


def spell_ring(ring: Graph | PredictedGraph | None, across: bool) -> str:
    """`12 rings of 30 GB/s`."""
    if ring is None:
        return "no ring"
    return f"{plural(ring.channels, 'ring')} of {in_gbs(ring_gbs(ring, across) / max(ring.channels, 1))}"


def cost_by_model(then: Prediction | None, now: Prediction | None, where: str, unpriced: str) -> Cost:
    """What an all-reduce of PRICED_BYTES loses by NCCL's model of both; `unpriced` where it gives no loss."""
    old, new = then.all_reduce if then is not None else None, now.all_reduce if now is not None else None
    if old is None or new is None or old.busbw_gbs <= new.busbw_gbs:
        return Cost(text=unpriced)
    text = f"an all-reduce of 1 GiB{where}: {new.busbw_gbs:.0f} instead of {in_gbs(old.busbw_gbs)} by NCCL's own model"
    return Cost(old.busbw_gbs - new.busbw_gbs, 1 - new.busbw_gbs / old.busbw_gbs, text)
