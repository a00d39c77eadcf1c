from tests.evidence.filled import node_by
from topodiag.evidence.amd.kfd import NODES, Kfd
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node


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


def test_type_weight_and_bandwidth_say_what_joins_a_pair() -> None:
    node = node_of(tree((1, 2, 11, 15, 64000), (2, 3, 11, 30, 0), (3, 1, 2, 40, 0), (1, 3, 11, 15, 0)))
    words = {pair: fact.value for pair, fact in node.smi_matrix.items()}
    assert words["GPU0", "GPU1"] == "XGMI"
    assert words["GPU1", "GPU2"] == "XGMI over 2 hops"
    assert words["GPU2", "GPU0"] == "PCIE"
    assert words["GPU0", "GPU2"] == "XGMI over 2 hops"


def test_a_link_to_a_cpu_joins_no_gpus() -> None:
    assert node_of(tree((1, 0, 2, 20, 0))).smi_matrix == {}


def test_two_gpus_with_links_and_none_between_them_have_pcie() -> None:
    words = {
        pair: fact.value
        for pair, fact in node_of(tree((1, 2, 11, 15, 64000), (3, 2, 11, 15, 64000))).smi_matrix.items()
    }
    assert words["GPU0", "GPU2"] == "PCIE"
    assert node_of(tree((1, 2, 11, 15, 64000))).smi_matrix.get(("GPU0", "GPU2")) is None
