"""What NCCL works on when it loads a file on a machine."""

from __future__ import annotations

from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo import changes
from topodiag.nccl.topo.changes import apply
from topodiag.nccl.topo.merge import loaded


def pci(bus: str, *children: Element) -> Element:
    return Element("pci", (("busid", bus), ("link_width", "16")), children)


def gpu(dev: int, links: int = 18) -> Element:
    nvlink = Element("nvlink", (("target", "s"), ("count", str(links))))
    return Element("gpu", (("dev", str(dev)), ("sm", "90")), (nvlink,))


def nic(name: str) -> Element:
    return Element("nic", (), (Element("net", (("name", name), ("dev", name[-1]), ("speed", "400000"))),))


def cpu(numa: int, *children: Element) -> Element:
    return Element("cpu", (("numaid", str(numa)), ("arch", "x86_64")), children)


def system(*cpus: Element) -> Element:
    return Element("system", (("version", "1"),), cpus)


MACHINE = system(
    cpu(0, pci("0000:10:00.0", pci("0000:11:00.0", gpu(0)), pci("0000:12:00.0", nic("mlx5_0")))),
    cpu(1, pci("0000:20:00.0", pci("0000:21:00.0", gpu(1)), pci("0000:22:00.0", nic("mlx5_1")))),
)


def buses(tree: Element) -> set[str | None]:
    return {element.get("busid") for element in tree.walk() if element.tag == "pci"}


def test_a_dump_of_the_machine_changes_nothing() -> None:
    assert loaded(MACHINE, MACHINE) == MACHINE


def test_an_empty_file_leaves_detection_as_it_is() -> None:
    assert loaded(system(), MACHINE) == MACHINE


def test_what_the_file_leaves_out_is_added_where_the_machine_has_it() -> None:
    part = apply(MACHINE, [changes.remove("mlx5_1")]).tree
    element = loaded(part, MACHINE)
    assert sorted(changes.nets_of(element)) == ["mlx5_0", "mlx5_1"]
    assert "0000:22:00.0" in buses(element)


def test_a_nic_that_the_file_names_stays_where_the_file_puts_it() -> None:
    moved = system(cpu(0, pci("0000:10:00.0", pci("0000:11:00.0", gpu(0)), pci("0000:99:00.0", nic("mlx5_1")))))
    element = loaded(moved, MACHINE)
    assert changes.nets_of(element).count("mlx5_1") == 1
    assert "0000:22:00.0" not in buses(element)


def test_devices_of_another_machine_are_trimmed() -> None:
    other = system(cpu(0, pci("0000:aa:00.0", pci("0000:ab:00.0", gpu(0)), pci("0000:ac:00.0", nic("mlx5_9")))))
    assert loaded(other, MACHINE) == MACHINE


def test_attributes_of_the_file_win_except_numbers_of_the_run() -> None:
    lying = apply(MACHINE, [changes.width("GPU0=4"), changes.down("nvlink:GPU1:6")]).tree
    element = loaded(lying, MACHINE)
    assert changes.gpus_of(element)[0].get("link_width") == "4"
    counts = [link.get("count") for link in element.walk() if link.tag == "nvlink"]
    assert counts == ["18", "12"]


def test_a_gpu_without_links_in_the_file_is_asked_for_them_anew() -> None:
    bare = system(cpu(0, pci("0000:11:00.0", Element("gpu", (("dev", "0"),)))))
    element = loaded(bare, MACHINE)
    links = changes.gpus_of(element)[0].having("gpu")[0].having("nvlink")
    assert [link.get("count") for link in links] == ["18"]
