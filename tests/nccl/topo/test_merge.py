"""What NCCL works on when it loads a file on a machine."""

from tests.nccl.small_trees import cpu, gpu, host, nic, nvlink, pci
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo import changes
from topodiag.nccl.topo.changes import apply
from topodiag.nccl.topo.merge import loaded


def board(bus: str, dev: int, name: str) -> Element:
    """A switch with a GPU of 18 NVLinks and a NIC."""
    return pci(f"{bus}0", gpu(f"{bus}1", nvlink("s", 18), dev=dev, sm=90), nic(f"{bus}2", 400000, name=name))


MACHINE = host(cpu(0, board("1", 0, "mlx5_0")), cpu(1, board("2", 1, "mlx5_1")))


def buses(tree: Element) -> set[str | None]:
    return {element.get("busid") for element in tree.walk() if element.tag == "pci"}


def test_a_dump_of_the_machine_changes_nothing() -> None:
    assert loaded(MACHINE, MACHINE) == MACHINE


def test_an_empty_file_leaves_detection_as_it_is() -> None:
    assert loaded(host(), MACHINE) == MACHINE


def test_what_the_file_leaves_out_is_added_where_the_machine_has_it() -> None:
    part = apply(MACHINE, [changes.remove("mlx5_1")]).tree
    element = loaded(part, MACHINE)
    assert sorted(changes.nets_of(element)) == ["mlx5_0", "mlx5_1"]
    assert "0000:22:00.0" in buses(element)


def test_a_nic_that_the_file_names_stays_where_the_file_puts_it() -> None:
    moved = host(cpu(0, pci("10", gpu("11", nvlink("s", 18), dev=0, sm=90), nic("99", 400000, name="mlx5_1"))))
    element = loaded(moved, MACHINE)
    assert changes.nets_of(element).count("mlx5_1") == 1
    assert "0000:22:00.0" not in buses(element)


def test_devices_of_another_machine_are_trimmed() -> None:
    other = host(cpu(0, board("a", 0, "mlx5_9")))
    assert loaded(other, MACHINE) == MACHINE


def test_attributes_of_the_file_win_except_numbers_of_the_run() -> None:
    lying = apply(MACHINE, [changes.width("GPU0=4"), changes.down("nvlink:GPU1:6")]).tree
    element = loaded(lying, MACHINE)
    assert changes.gpus_of(element)[0].get("link_width") == "4"
    counts = [link.get("count") for link in element.walk() if link.tag == "nvlink"]
    assert counts == ["18", "12"]


def test_a_gpu_without_links_in_the_file_is_asked_for_them_anew() -> None:
    bare = host(cpu(0, gpu("11", dev=0)))
    element = loaded(bare, MACHINE)
    links = changes.gpus_of(element)[0].having("gpu")[0].having("nvlink")
    assert [link.get("count") for link in links] == ["18"]
