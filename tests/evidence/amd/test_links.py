"""What AMD GPUs are to each other: which text says it, and the links in the kernel's tree of KFD."""

from tests.evidence.filled import node_by
from tests.tables import examples
from topodiag.evidence.amd.links import NODES, Kfd, link_gbs, pair_word
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node


@examples("kind", "hops", "word")
def test_what_a_pair_is_called(kind: str, hops: int, word: str) -> None:
    assert pair_word(kind, hops) == word


# --- the link of GPUs and CPUs in the kernel's tree of KFD ----------------------------------------------------


def tree(*links: tuple[int, int, int, int, int]) -> str:
    """One CPU node, GPUs 1 to 3, and links as (from, to, type, weight, bandwidth)."""
    lines = [f"= {NODES}/0/properties\tcpu_cores_count 96", f"= {NODES}/0/properties\tsimd_count 0"]
    for number in range(1, 4):
        for text in ("simd_count 1216", f"location_id {0x1500 + 0x100 * number}", "domain 0"):
            lines.append(f"= {NODES}/{number}/properties\t{text}")
    for place, (start, end, kind, weight, gbs) in enumerate(links):
        folder = "io_links" if kind == 11 else "p2p_links"
        values = {"type": kind, "node_from": start, "node_to": end, "weight": weight, "max_bandwidth": gbs}
        lines += [f"= {NODES}/{start}/{folder}/{place}/properties\t{name} {value}" for name, value in values.items()]
    return "\n".join([*lines, ""])


def node_of(text: str) -> Node:
    return node_by(Kfd(), Blob("sys-kfd.tree", text.encode()))


def test_gpus_are_numbered_after_the_cpus() -> None:
    node = node_of(tree())
    assert [(gpu.index, gpu.bus_id) for gpu in node.gpus] == [(n, f"0000:{0x16 + n:02x}:00.0") for n in range(3)]


@examples("links", "words")
def test_links_say_what_joins_a_pair(links: list[tuple[int, int, int, int, int]], words: dict[str, str]) -> None:
    """Links by the nodes that they join, their type, weight and bandwidth; what a pair has, or that it has nothing."""
    matrix = {" ".join(pair): fact.value for pair, fact in node_of(tree(*links)).smi_matrix.items()}
    assert {pair: matrix.get(pair, "") for pair in words} == words


@examples("lane", "link", "gbs")
def test_a_link_has_the_lower_of_its_rates_that_are_above_nothing(lane: str, link: str, gbs: float) -> None:
    assert link_gbs(lane, link) == (gbs or None)
