"""The nearest NICs, GPU and CPU: NCCL's tie-breaks and its spread of channels over NICs."""

from __future__ import annotations

import pytest

from tests.nccl.small_trees import GEN5, built, cpu, element, gpu, host, nic, nvlink, pci
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.graph import RejectedError, System
from topodiag.nccl.graph.nearest import local_cpu, local_gpu, local_nets, nearest, row

SWITCH = nvlink("0000:05:00.0", 12)


def quad(gpus: int, nics: int, **of_gpu: object) -> Element:
    """GPUs and NICs, all below one switch and so all equally near."""
    below = [gpu(f"1{at}", SWITCH, dev=at, **of_gpu) for at in range(gpus)] + [nic(f"2{at}") for at in range(nics)]
    return host(cpu(0, pci("01", *below)))


def spread(system: System, channels: int = 4, policy: str = "") -> list[list[int]]:
    """The NICs that each GPU uses for its first channels: its own in turn."""
    own = [local_nets(system, gpu.index, policy) for gpu in system.gpus]
    return [[nets[channel % len(nets)] for channel in range(channels)] for nets in own]


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


def test_as_many_gpus_as_nics_take_one_each_in_mirrored_order() -> None:
    """NVML index 1 of 4 is binary 01, mirrored 10: NIC 2."""
    assert spread(built(quad(4, 4)), channels=2) == [[0, 0], [2, 2], [1, 1], [3, 3]]


def test_the_order_is_not_mirrored_for_a_number_of_nics_that_is_no_power_of_two() -> None:
    assert spread(built(quad(3, 3)), channels=1) == [[0], [1], [2]]


def test_a_gpu_with_several_nics_takes_another_one_for_each_channel() -> None:
    assert spread(built(quad(2, 4))) == [[0, 1, 0, 1], [2, 3, 2, 3]]


def test_the_nvml_index_counts_not_the_rank_and_from_2_30_on_modulo_the_gpus() -> None:
    tree = host(cpu(0, pci("01", gpu("10", SWITCH, dev=6), gpu("11", SWITCH, dev=7), nic("20"), nic("21"))))
    assert spread(built(tree, minor=28), channels=1) == [[0], [1]]
    three = host(
        cpu(0, pci("01", *(gpu(f"1{at}", SWITCH, dev=at + 4) for at in range(3)), *(nic(f"2{at}") for at in range(3))))
    )
    assert spread(built(three, minor=28), channels=1) == [[1], [2], [0]]
    assert spread(built(three, minor=30), channels=1) == [[1], [2], [0]]
    eight = host(cpu(0, pci("01", *(gpu(f"1{at}", SWITCH, dev=at + 2) for at in range(3)), nic("20"), nic("21"))))
    assert spread(built(eight, minor=28), channels=1) == [[0], [1], [0]]
    assert spread(built(eight, minor=30), channels=1) == [[0], [0], [1]]


@examples("policy", "count")
def test_the_policy_says_over_how_many_nics_a_gpu_spreads(policy: str, count: int) -> None:
    assert len(local_nets(built(quad(2, 4)), 0, policy)) == count


def test_a_nic_belongs_to_the_gpu_that_takes_it_for_its_first_channels() -> None:
    system = built(quad(2, 4))
    assert [local_gpu(system, net.index) for net in system.nets] == [0, 0, 1, 1]
    assert [net.local_gpu for net in system.nets] == [0, 0, 1, 1]


def test_a_nic_that_no_gpu_takes_belongs_to_none() -> None:
    system = built(host(cpu(0, pci("01", gpu("10"), nic("20", 200000)), pci("02", nic("21", 100000)))))
    assert [net.local_gpu for net in system.nets] == [0, -1]


def test_2_18_asks_all_gpus_whether_they_take_a_nic_not_only_the_nearest() -> None:
    """GPU 11 has no NIC of its own and starts with the one that GPU 10, by its NVML index, takes second."""
    tree = host(cpu(0, pci("01", gpu("10", dev=1), nic("20"), nic("21")), pci("02", gpu("11", dev=0))))
    assert [net.local_gpu for net in built(tree, minor=18, nodes=2).nets] == [1, 0]
    assert [net.local_gpu for net in built(tree, minor=19, nodes=2).nets] == [0, 0]


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


def three_share_two(sm: int, device: str, minor: int, **env: str) -> list[list[int]]:
    """The NIC that GPUs 2, 3 and 4 of a host take of two below their switch."""
    gpus = [gpu(f"1{at}", SWITCH, dev=at + 2, sm=sm) for at in range(3)]
    nics = [
        pci(f"2{at}", element("nic", element("net", name=f"mlx5_{at}", speed=200000, gdr=1)), vendor="0x15b3",
            device=device, class_="0x020700")
        for at in range(2)
    ]  # fmt: skip
    return spread(built(host(cpu(0, pci("01", *gpus, *nics))), minor=minor, **env), channels=1)


BY_INDEX, IN_TURN = [[0], [1], [0]], [[0], [0], [1]]


def test_from_2_31_on_the_nvml_index_counts_again_but_2_31_shares_connectx_8_of_blackwell_in_turn() -> None:
    assert three_share_two(90, "0x1021", 30) == IN_TURN
    for minor in (31, 32):
        assert three_share_two(90, "0x1021", minor) == three_share_two(90, "0x1023", minor) == BY_INDEX
        assert three_share_two(100, "0x1021", minor) == BY_INDEX
    for connectx_8 in ("0x1023", "0x2100"):
        assert three_share_two(100, connectx_8, 31) == IN_TURN
        assert three_share_two(100, connectx_8, 32) == BY_INDEX


@pytest.mark.parametrize(("minor", "taken"), [(28, BY_INDEX), (30, IN_TURN), (31, IN_TURN), (32, BY_INDEX)])
def test_only_2_31_can_be_told_to_share_nics_in_turn(minor: int, taken: list[list[int]]) -> None:
    assert three_share_two(90, "0x1021", minor, NCCL_TOPO_SCATTER_START_NET="1") == taken


def adapters(gpus: int, count: int) -> Element:
    """GPUs, and so many adapters of two ports each, all equally near; ports stay NICs of their own."""
    ports = [nic(f"{20 + 2 * at + port}", guid=hex(at + 1), port=port + 1) for at in range(count) for port in range(2)]
    return host(cpu(0, pci("01", *(gpu(f"1{at}", SWITCH, dev=at) for at in range(gpus)), *ports)))


@examples("minor", "gpus", "count", "expected")
def test_gpus_share_rails_from_2_32_on(minor: int, gpus: int, count: int, expected: list[list[int]]) -> None:
    system = built(adapters(gpus, count), minor=minor)
    assert [local_nets(system, number) for number in range(gpus)] == expected


def test_rails_that_a_list_names_are_shared_as_rails() -> None:
    """Two adapters whose first ports are on one rail, and their second ports on another."""
    ports = [nic(f"{20 + at}", guid=hex(at // 2 + 1), port=at % 2 + 1, rail=at % 2, plane=at // 2) for at in range(4)]
    tree = host(cpu(0, pci("01", gpu("10", SWITCH, dev=0), gpu("11", SWITCH, dev=1), *ports)))
    assert [local_nets(built(tree, minor=32), number) for number in range(2)] == [[0, 2], [1, 3]]
