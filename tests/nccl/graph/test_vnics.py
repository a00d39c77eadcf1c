"""Which ports NCCL merges into virtual NICs, by version and by setting, and where the virtual NIC then stands."""

from collections.abc import Mapping

import pytest

from tests.nccl.small_trees import GEN4, cpu, element, gpu, host, nic, pci
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import KNOWN, spell_version
from topodiag.nccl.graph.attach import HostTree, joined_tree
from topodiag.nccl.graph.graph import Branch, RejectedError
from topodiag.nccl.predict import predict_tree

LEVEL, FORCE, POLICY = "NCCL_NET_MERGE_LEVEL", "NCCL_NET_FORCE_MERGE", "NCCL_NET_MERGE_POLICY"


def port(bus: str, number: int, **more: object) -> Element:
    """A function of its own with one port: PCI device BUS, function and net number `number`."""
    attributes: dict[str, object] = {"speed": 200000, "port": 1, "gdr": 1, "dev": number, "name": f"n{number}", **more}
    net = element("net", **attributes)
    function = {"class_": "0x020700", "link_speed": GEN4, "link_width": 8}
    return element("pci", element("nic", net), busid=f"0000:{bus}:00.{number % 2}", **function)


def two_adapters(**more: object) -> Element:
    """GPUs 10 and 20; adapter 11 with nets 0 and 1 below the switch of GPU 10, adapter 21 with 2 and 3 below 20's."""
    one = pci("01", gpu("10"), port("11", 0, **more), port("11", 1, **more))
    return host(cpu(0, one, pci("02", gpu("20"), port("21", 2, **more), port("21", 3, **more))))


RANKS = {"0000:10:00.0": 0, "0000:20:00.0": 1}


def nets(tree: Element, minor: int = 28, env: Mapping[str, str] | None = None) -> dict[str, tuple[str, int, str]]:
    """Nets of the graph by name: (number, Mb/s, bus id of the function that they stand in)."""
    joined = joined_tree([HostTree(tree, RANKS)], minor, env)
    table: dict[str, tuple[str, int, str]] = {}

    def walk(branch: Branch, bus: str) -> None:
        bus = branch.attributes.get("busid", bus)
        for child in branch.children:
            if child.tag == "net" and child.attributes.get("net") != "0":
                given = child.attributes
                table[given["name"]] = (given["dev"], int(given["speed"]), bus)
            walk(child, bus)

    walk(joined, "")
    return table


def test_ports_of_one_adapter_are_one_device_with_their_speed_together() -> None:
    assert nets(two_adapters()) == {"n0+n1": ("4", 400000, "0000:11:00.2"), "n2+n3": ("5", 400000, "0000:21:00.2")}


def test_ports_in_one_function_keep_their_place() -> None:
    shared = [element("net", name=f"n{at}", dev=at, speed=100000, port=at + 1) for at in range(2)]
    function = pci("11", element("nic", *shared), class_="0x020700")
    tree = host(cpu(0, pci("01", gpu("10"), function, gpu("20"))))
    assert nets(tree) == {"n0+n1": ("2", 200000, "0000:11:00.0")}
    # up to 2.26 the virtual NIC stands where nothing looks for it
    assert sorted(nets(tree, 25)) == ["n0", "n0+n1", "n1"]
    assert [net.name for net in _graph_nets(tree, 25)] == ["n0", "n1"]


def _graph_nets(tree: Element, minor: int) -> list[object]:
    from topodiag.nccl.graph.system import build_graph  # noqa: PLC0415 - this test alone builds a graph

    return list(build_graph(joined_tree([HostTree(tree, RANKS)], minor, {}), minor=minor, nranks=2).nets)


@examples("minor", "env", "names")
def test_versions_and_settings_decide_who_is_merged(minor: int, env: dict[str, str], names: list[str]) -> None:
    assert sorted(nets(two_adapters(), minor, env)) == names


def test_ports_of_one_rail_are_merged_by_rail() -> None:
    assert sorted(nets(two_adapters(rail=1), 30, {POLICY: "RAIL", LEVEL: "PHB"})) == ["n0+n1+n2+n3"]


@examples("minor", "env", "words")
def test_what_cannot_be_merged_as_the_user_wants_is_refused(minor: int, env: dict[str, str], words: str) -> None:
    with pytest.raises(RejectedError, match=words):
        nets(two_adapters(), minor, env)


def test_ports_below_two_cpus_are_no_virtual_nic() -> None:
    far = host(cpu(0, gpu("10"), port("11", 0)), cpu(1, gpu("20"), port("21", 2)))
    with pytest.raises(RejectedError, match="different NUMA domains"):
        nets(far, 30, {FORCE: "n0,n2"})


def test_lanes_add_up_over_a_switch_but_not_in_one_adapter() -> None:
    def width(env: dict[str, str]) -> str:
        tree = joined_tree([HostTree(two_adapters(), RANKS)], 30, env)
        branches = [node for node in tree.walk() if node.attributes.get("busid", "").endswith(":00.2")]
        return branches[0].attributes["link_width"]

    assert width({}) == "8"
    assert width({LEVEL: "PHB"}) == "32"


def test_sockets_and_other_plugins_are_not_merged() -> None:
    assert sorted(nets(two_adapters(port=0))) == ["n0", "n1", "n2", "n3"]


def test_from_2_24_to_2_26_a_port_alone_gets_a_number_of_its_own_as_virtual_nic() -> None:
    assert [nets(two_adapters(), minor, {LEVEL: "LOC"})["n0"][0] for minor in (23, 25, 27)] == ["0", "4", "0"]


def test_ports_that_gin_uses_stay_beside_their_virtual_nic() -> None:
    tree = joined_tree([HostTree(two_adapters(gin=1), RANKS)], 30, {})
    given = {node.attributes["name"]: node.attributes.get("net") for node in tree.walk() if node.tag == "net"}
    assert given == {"n0": "0", "n1": "0", "n2": "0", "n3": "0", "n0+n1": "1", "n2+n3": "1"}


@pytest.mark.parametrize("minor", KNOWN)
def test_every_version_predicts_a_machine_with_two_ports(minor: int) -> None:
    prediction = predict_tree(two_adapters(), nodes=2, version=spell_version(minor), sizes=())
    assert prediction.accepted, prediction.why


def test_a_merged_adapter_carries_what_its_ports_carry_together() -> None:
    """Two ports of 25 GB/s behind eight lanes of Gen4 each: 12 GB/s by one function, 24 GB/s by a NIC in one x16."""
    wide = host(cpu(0, pci("01", gpu("10"), nic("11", nets=2, port=1)), pci("02", gpu("20"))))
    assert predict_tree(wide, nodes=2, version="2.28", sizes=()).max_bw == 24
