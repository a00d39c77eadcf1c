"""Which ports NCCL merges into virtual NICs, by version and by setting, and where the virtual NIC then stands."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.depth import DEEP
from tests.nccl.small_trees import GEN4, GEN5, cpu, element, gpu, host, nic, pci
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


@examples("minor", "env", "names", "ports")
def test_versions_settings_and_rails_decide_who_is_merged(
    minor: int, env: dict[str, str], names: list[str], ports: dict[str, int] | None
) -> None:
    assert sorted(nets(two_adapters(**ports or {}), minor, env)) == names


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


# --- Machines drawn by chance, with adapters of one to four ports, rails and planes: the virtual NICs are those that
# a plain reading of NCCL's rules gives, and the machine is predicted as a whole


LOC, PORT, PIX, PHB, SYS = "LOC", "PORT", "PIX", "PHB", "SYS"
ORDER = (LOC, PORT, PIX, PHB, SYS)
MOST = {28: 4, 30: 8, 32: 8}


@dataclass(frozen=True)
class Port:
    """A port by its number, and where it stands: socket, PCIe switch, adapter."""

    number: int
    socket: int
    switch: int
    adapter: int
    gbps: int
    rail: int
    plane: int

    @property
    def name(self) -> str:
        return f"mlx5_{self.number}"

    def to(self, other: Port) -> str:
        """The type of the way to another port."""
        if self.adapter == other.adapter:
            return PORT
        if self.switch == other.switch:
            return PIX
        return PHB if self.socket == other.socket else SYS


def machine(seed: int) -> tuple[Element, list[Port], dict[str, str], int]:
    """A host with two sockets, its ports, the settings of a job on it, and the minor version."""
    draw = random.Random(seed)
    minor = draw.choice(list(MOST))
    ports: list[Port] = []
    sockets: list[list[Element]] = [[], []]
    switches = draw.choice([2, 4, 8])
    planes = draw.choice([0, 2])
    for switch in range(switches):
        below = [gpu(f"{switch + 1:x}1", sm=90, speed=GEN5, dev=switch)]
        for at in range(draw.choice([1, 1, 2])):
            apart, count = draw.random() < 0.5, draw.choice([1, 2, 2, 4])
            gbps = draw.choice([100, 200, 400])
            mine = [
                Port(len(ports) + index, switch % 2, switch, switch * 8 + at, gbps,
                     draw.choice([-1, switch % 4]), index % planes if planes else -1)
                for index in range(count)
            ]  # fmt: skip
            ports += mine
            below += functions(f"{switch + 1:x}{8 + at}", mine, apart=apart)
        sockets[switch % 2].append(pci(f"{switch + 1:x}0", *below, speed=GEN5))
    env = {}
    if draw.random() < 0.5:
        env["NCCL_NET_MERGE_LEVEL"] = draw.choice([LOC, PORT, PIX, PHB])
    if draw.random() < 0.2:
        env["NCCL_IB_MERGE_NICS"] = "0"
    if draw.random() < 0.3:
        env["NCCL_NET_MERGE_POLICY"] = draw.choice(["RAIL", "ALL"])
    return host(*(cpu(at, *elements) for at, elements in enumerate(sockets))), ports, env, minor


def functions(bus: str, ports: list[Port], *, apart: bool) -> list[Element]:
    """An adapter's ports, each in a function of its own or all in one."""
    nets = []
    for port in ports:
        given: dict[str, object] = {"rail": port.rail, "plane": port.plane}
        nets.append(
            element(
                "net", name=port.name, dev=port.number, speed=port.gbps * 1000, port=1, gdr=1,
                guid=f"0xa{port.adapter:x}", **{name: value for name, value in given.items() if value != -1},
            )
        )  # fmt: skip
    link = {"class_": "0x020700", "link_speed": GEN5, "link_width": 16}
    if not apart:
        return [element("pci", element("nic", *nets), busid=f"0000:{bus}:00.0", **link)]
    return [
        element("pci", element("nic", net), busid=f"0000:{bus}:00.{number}", **link) for number, net in enumerate(nets)
    ]


def wanted(ports: list[Port], env: dict[str, str], minor: int) -> dict[str, int]:
    """Names of the devices with Gb/s of their ports together, by ncclTopoAutoMerge read plainly."""
    level = ORDER.index(env.get("NCCL_NET_MERGE_LEVEL", PORT))
    by_rail = env.get("NCCL_NET_MERGE_POLICY") == "RAIL" and minor >= 30
    able = env.get("NCCL_IB_MERGE_NICS") != "0"
    left, made = list(ports), {}
    while left:
        first, *rest = left
        group = [first]
        for port in rest:
            near = ORDER.index(first.to(port)) <= level
            same = not by_rail or (first.rail != -1 and first.rail == port.rail)
            if near and same and able and len(group) < MOST[minor]:
                group.append(port)
        made["+".join(port.name for port in group)] = sum(port.gbps for port in group)
        left = [port for port in left if port not in group]
    return made


SLOW = {1, 9, 17, 37}
"""The search takes seconds on these, of eight switches most: a deep run asks them. 4 merges no NICs, as 9."""


@pytest.mark.parametrize("seed", range(40) if DEEP else sorted({4, *range(1, 40, 2)} - SLOW))
def test_a_machine_of_several_ports_and_planes_is_predicted_as_nccl_merges_it(seed: int) -> None:
    tree, ports, env, minor = machine(seed)
    prediction = predict_tree(tree, nodes=2, version=f"2.{minor}", env=env, sizes=(1 << 30,))
    assert prediction.accepted, prediction.why
    devices = wanted(ports, env, minor)
    merged = {name: gbps / 8 for name, gbps in devices.items() if "+" in name}
    assert {nic.name: nic.gbs for nic in prediction.virtual_nics} == merged
    labels = {end for row in prediction.paths.values() for end in row if end.startswith("NET/")}
    texts = {f"NET/0-{port.number:x}" for port in ports if port.name in devices}
    assert labels == texts | {nic.label for nic in prediction.virtual_nics}
    assert prediction.max_bw <= max(devices.values()) / 8
    assert prediction.all_reduce.busbw_gbs > 0
