"""The nearest NICs, GPU and CPU: NCCL's tie-breaks and its spread of channels over NICs."""

from typing import Any

import pytest

from tests.nccl.small_trees import GEN5, built, cpu, element, gpu, grown, host, nic, nvlink, pci
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.graph import RejectedError
from topodiag.nccl.graph.nearest import local_cpu, local_gpu, local_nets, nearest, row

SWITCH = nvlink("0000:05:00.0", 12)


def quad(gpus: int, nics: int, **of_gpu: object) -> Element:
    """GPUs and NICs, all below one switch and so all equally near."""
    below = [gpu(f"1{at}", SWITCH, dev=at, **of_gpu) for at in range(gpus)] + [nic(f"2{at}") for at in range(nics)]
    return host(cpu(0, pci("01", *below)))


def three_sharing_two(sm: int, device: str) -> Element:
    """GPUs 2, 3 and 4 of a host, and two NICs below their switch."""
    gpus = [gpu(f"1{at}", SWITCH, dev=at + 2, sm=sm) for at in range(3)]
    nics = [
        pci(f"2{at}", element("nic", element("net", name=f"mlx5_{at}", speed=200000, gdr=1)), vendor="0x15b3",
            device=device, class_="0x020700")
        for at in range(2)
    ]  # fmt: skip
    return host(cpu(0, pci("01", *gpus, *nics)))


def adapters(gpus: int, count: int) -> Element:
    """GPUs, and so many adapters of two ports each, all equally near; ports stay NICs of their own."""
    ports = [nic(f"{20 + 2 * at + port}", guid=hex(at + 1), port=port + 1) for at in range(count) for port in range(2)]
    return host(cpu(0, pci("01", *(gpu(f"1{at}", SWITCH, dev=at) for at in range(gpus)), *ports)))


@examples("tree", "options", "policy", "wanted")
def test_who_takes_which_nics(
    tree: list[Any], options: dict[str, Any] | None, policy: str | None, wanted: dict[str, Any]
) -> None:
    """By version the NICs that each GPU takes in turn for its channels, all or the first, and the GPU that takes a NIC
    for its first channels, -1 for none."""
    machine = grown(tree, quad=quad, adapters=adapters, three_sharing_two=three_sharing_two)
    for minor, want in wanted.items():
        system = built(machine, minor=int(minor), **(options or {}))
        nets = [local_nets(system, gpu.index, policy or "") for gpu in system.gpus]
        shown = {"nets": nets, "first": [own[0] for own in nets], "gpus": [net.local_gpu for net in system.nets]}
        assert {name: shown[name] for name in want} == want
        assert [local_gpu(system, net.index) for net in system.nets] == shown["gpus"]


def test_the_widest_paths_win_then_the_lowest_type_whatever_the_hops() -> None:
    tree = host(cpu(0, pci("01", gpu("10", speed=GEN5), nic("20", 100000), speed=GEN5), nic("21", 200000, GEN5)))
    system = built(tree)
    numbers, kind = nearest(system, system.gpus[0], "NET")
    assert (numbers, kind) == ([1], 8)
    both = built(host(cpu(0, pci("01", pci("02", gpu("10"), nic("20")), nic("21")))))
    assert nearest(both, both.gpus[0], "NET") == ([0], 4)


def test_where_nothing_is_connected_all_are_equally_near() -> None:
    system = built(quad(1, 2))
    for path in system.gpus[0].paths["NET"]:
        path.bw, path.type = 0.0, 11
    assert nearest(system, system.gpus[0], "NET") == ([0, 1], 11)


def test_where_no_path_was_looked_for_there_is_none() -> None:
    system = built(quad(1, 0))
    assert nearest(system, system.gpus[0], "NET") == ([], 11)
    with pytest.raises(RejectedError, match=r"Could not find any local path from gpu 0 to net\."):
        local_nets(system, 0)
    with pytest.raises(RejectedError, match="Could not find any local path from gpu 0 to nvs"):
        row(built(host(cpu(0, gpu("10")))).gpus[0], "NVS")


def test_the_nearest_cpu_has_the_fewest_hops() -> None:
    system = built(host(cpu(0, nic("20")), cpu(1, gpu("10"))))
    assert local_cpu(system, 0) == 1
    assert local_cpu(built(host(cpu(0, nic("20")), cpu(1, gpu("10"))), minor=30), 0) == 1


def test_up_to_2_22_a_cpu_out_of_reach_counts_as_nearest_until_a_nearer_comes() -> None:
    """A CPU 0 hops away can only be one that is not connected."""
    for minor, nearest_cpu in ((22, 1), (23, 0)):
        system = built(host(cpu(0, gpu("10")), cpu(1, nic("20"))), minor=minor, nodes=2)
        system.gpus[0].paths["CPU"][1].count = 0
        assert local_cpu(system, 0) == nearest_cpu


def test_a_gpu_without_a_cpu_is_rejected() -> None:
    system = built(host(cpu(0, gpu("10"))))
    system.gpus[0].paths["CPU"][0].count = 0
    with pytest.raises(RejectedError, match="Error : could not find CPU close to GPU 0"):
        local_cpu(system, 0)
    del system.gpus[0].paths["CPU"]
    with pytest.raises(RejectedError, match="Error : could not find CPU close to GPU 0"):
        local_cpu(system, 0)
