"""Paths before the corrections: types, the replacement rules of both generations, and ways through other GPUs."""

from typing import Any

import pytest

from tests.nccl.small_trees import GEN4, GEN5, built, cpu, element, gpu, host, nic, nvlink, pci, to_gpu, way, ways
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import path_types
from topodiag.nccl.graph.graph import RejectedError
from topodiag.nccl.graph.paths import path_table


def box() -> Element:
    """Two sockets; 10 and 11 below one switch with a NIC, 12 below another switch of the same root port."""
    left = cpu(0, pci("01", pci("02", gpu("10"), gpu("11"), nic("18")), pci("03", gpu("12"))))
    return host(left, cpu(1, pci("04", gpu("20"))))


_ROW = [("10", "11"), ("11", "10", "12"), ("12", "11", "13"), ("13", "12")]
TREES = {
    "box": box(),
    "a GPU of x8 and a NIC of 100 Gb/s": host(cpu(0, pci("01", gpu("10", width=8), nic("20", 100000)))),
    "NVSwitch": host(cpu(0, *(gpu(bus, nvlink("0000:05:00.0", 18), sm=90) for bus in ("10", "11")))),
    "three GPUs in a row": host(
        cpu(0, gpu("10", to_gpu("11", 2)), gpu("11", to_gpu("10", 2), to_gpu("12", 1))),
        cpu(1, gpu("12", to_gpu("11", 1))),
    ),
    "four GPUs in a row": host(cpu(0, *(gpu(bus, *(to_gpu(peer, 2) for peer in peers)) for bus, *peers in _ROW))),
    "a switch and NVLinks around it": host(
        cpu(
            0,
            pci("01", gpu("10", to_gpu("11", 1), speed=GEN5), gpu("12", to_gpu("11", 1), speed=GEN5), speed=GEN5),
            gpu("11", to_gpu("10", 1), to_gpu("12", 1)),
        )
    ),
    "chip-to-chip links": host(
        cpu(0, gpu("10", element("c2c", bw=44712, count=10), to_gpu("11", 18), sm=100), arch="arm64"),
        cpu(1, gpu("11", to_gpu("10", 18), sm=100)),
    ),
}


@examples("tree", "asked")
def test_ways_between_two_devices(tree: str, asked: list[Any]) -> None:
    assert ways([TREES[tree]], asked) == asked


@pytest.mark.parametrize(("minor", "words"), [(28, "remNode 0/10000 nlinks 1"), (30, "remNode 8/10000 nlinks 2")])
def test_an_nvlink_that_only_one_gpu_tells_of_has_no_way_back(minor: int, words: str) -> None:
    with pytest.raises(RejectedError, match=f"Failed to find reverse path from {words} to node"):
        built(host(cpu(0, gpu("10"), gpu("11", to_gpu("10", 2)))), minor=minor)


def test_the_gpu_that_does_not_tell_of_the_way_back_is_named_with_its_line() -> None:
    silent = gpu("10")
    silent = Element("pci", silent.attributes, silent.children, line=12)
    with pytest.raises(RejectedError) as rejected:
        built(host(cpu(0, silent, gpu("11", to_gpu("10", 2)))))
    assert rejected.value.line == 12


def test_a_gpu_out_of_nvlink_has_no_entry_for_the_nvswitch() -> None:
    tree = host(cpu(0, gpu("10", nvlink("0000:05:00.0", 18)), gpu("11", nvlink("0000:05:00.0", 18))), cpu(1, gpu("20")))
    table = path_table(built(tree))
    assert "NVS/0-0" in table["GPU/0-10000"]
    assert "NVS/0-0" not in table["GPU/0-20000"]


def test_two_vertices_of_one_id_share_the_slot_of_the_first() -> None:
    system = built(host(cpu(0, gpu("10")), cpu(0, gpu("20"))), NCCL_P2P_LEVEL="SYS")
    assert len(system.cpus) == 2
    assert system.gpus[1].paths["CPU"][1].count == 0
    assert list(path_table(system)["GPU/0-20000"]).count("CPU/0-0") == 1


def test_versions_number_types_in_their_own_way() -> None:
    system = built(box(), minor=21, nodes=2)
    assert system.gpus[0].paths["NET"][0].type == path_types(21).pix == 3
    assert way(system, "GPU/0-10000", "NET/0-0") == (3, 24.0, "PIX")


def test_the_table_is_of_gpus_and_nets_and_in_one_decimal() -> None:
    table = path_table(
        built(host(cpu(0, pci("01", gpu("10", nvlink("0000:05:00.0", 18), sm=90), nic("20"), speed=GEN4))))
    )
    assert list(table) == ["GPU/0-10000", "NET/0-0"]
    assert table["GPU/0-10000"]["NVS/0-0"] == (1, 370.8, "NVL")
