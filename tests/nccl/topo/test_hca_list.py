"""NCCL_IB_HCA: the ports that it leaves, and their rails and planes."""

from tests.tables import examples
from tests.verdict.pricing.machines import tree
from topodiag.nccl.topo.changes import by_hca_list, edited, nets_of, with_values
from topodiag.nccl.topo.hca_list import HcaFilter


@examples("text", "name", "port", "taken")
def test_lists_of_devices_are_read_as_nccl_reads_them(text: str, name: str, port: int, taken: bool) -> None:
    assert HcaFilter(text).takes(name, port) is taken


@examples("text", "rail", "plane")
def test_a_list_gives_ports_rails_and_planes(text: str, rail: str | None, plane: str | None) -> None:
    expected = {"rail": rail, "plane": plane}
    assert HcaFilter(text).place("mlx5_0", 1) == {key: value for key, value in expected.items() if value is not None}


def test_a_tree_keeps_the_ports_of_the_list_and_their_functions() -> None:
    element = by_hca_list(tree(), "=mlx5_2:1:0:1,mlx5_3:1:1:1", rails=True)
    assert nets_of(element) == ["mlx5_2", "mlx5_3"]
    shown = [(net.get("rail"), net.get("plane")) for net in element.walk() if net.tag == "net"]
    assert shown == [("0", "1"), ("1", "1")]
    functions = [pci for pci in element.walk() if pci.tag == "pci" and pci.get("class") == "0x020700"]
    assert len(functions) == 2
    again = by_hca_list(element, "=mlx5_2:1:5:5,mlx5_3:1:5:5", rails=True)  # what the file says stays
    assert again == element
    older = by_hca_list(tree(), "=mlx5_2:1:0:1", rails=False)
    assert [net.get("rail") for net in older.walk() if net.tag == "net"] == [None]


def test_a_list_of_another_machine_leaves_nothing_and_sockets_have_none() -> None:
    assert by_hca_list(tree(), "=ibp1s0", rails=True) is None
    sockets = edited(tree(), lambda element: with_values(element, {"port": "0"}) if element.tag == "net" else element)
    assert by_hca_list(sockets, "=ibp1s0", rails=True) == sockets
