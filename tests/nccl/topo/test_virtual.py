"""A guest's flattened tree completed with the switches of its host."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.guests import element, flat, four_pairs, gpu, nic, pci_of, ways
from tests.scanned import node_at
from tests.tables import examples
from tests.topologies import clean, machines
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.topo.detect import places_of, tree_of
from topodiag.nccl.topo.virtual import (
    Guest,
    Link,
    Place,
    Plan,
    Switch,
    VirtualError,
    complete,
    guest_of,
    link_by_device,
)
from topodiag.nccl.topo.virtual_host import Pairs, find_pairs, plan_by_host, read_pairs

GEN5 = ("32.0 GT/s PCIe", "16")


def pairs_plan() -> Plan:
    """A switch for each GPU and its NIC, two of them on each socket."""
    return Plan(
        {
            f"{bus:04x}:00:00.0": Place(at // 2, (Switch(f"s{at}"),), Link(*GEN5))
            for at in range(4)
            for bus in (at + 1, at + 0x101)
        }
    )


def test_devices_come_below_the_switch_and_the_numa_node_of_their_place() -> None:
    paths = ways(complete(four_pairs(), pairs_plan()).tree)
    assert paths["0001:00:00.0"] == paths["0101:00:00.0"] == ("0", "ffff:ff:01.0")
    assert paths["0004:00:00.0"] == paths["0104:00:00.0"] == ("1", "ffff:ff:04.0")


def test_nccl_then_sees_each_nic_beside_its_gpu_and_finds_more_bandwidth() -> None:
    guest, done = four_pairs(), complete(four_pairs(), pairs_plan()).tree
    before, after = predict_tree(guest, nodes=2), predict_tree(done, nodes=2)
    own = [("GPU/0-100000", "NET/0-0"), ("GPU/0-200000", "NET/0-1"), ("GPU/0-400000", "NET/0-3")]
    assert {before.paths[near][to][1:] for near, to in own} == {(12.0, "PHB")}
    assert {after.paths[near][to][1:] for near, to in own} == {(48.0, "PIX")}
    assert after.paths["GPU/0-100000"]["NET/0-3"][2] == "PXN"
    assert (
        after.graphs[0].channels * after.graphs[0].bw_inter > 3 * before.graphs[0].channels * before.graphs[0].bw_inter
    )


def test_a_switch_that_is_put_in_has_what_nccl_requires_of_one() -> None:
    switch = pci_of(complete(four_pairs(), pairs_plan()).tree, "ffff:ff:01.0")
    assert dict(switch.attributes) == {
        "busid": "ffff:ff:01.0", "class": "0x060400", "link_speed": GEN5[0], "link_width": GEN5[1],
    }  # fmt: skip


def test_bus_ids_that_exist_in_the_guest_are_not_given_to_switches() -> None:
    taken = [f"FFFF:FF:{device:02x}.0" for device in range(1, 0x1F)]
    paths = ways(complete(four_pairs(), pairs_plan(), taken=taken).tree)
    assert [paths[f"{at:04x}:00:00.0"][1] for at in (1, 2, 3, 4)] == [
        "ffff:ff:1f.0", "ffff:fe:01.0", "ffff:fe:02.0", "ffff:fe:03.0",
    ]  # fmt: skip


def test_a_link_that_the_guest_can_read_stays() -> None:
    tree = flat(gpu(0, "0001:00:00.0", "16.0 GT/s PCIe", "8"), nic("ib0", "0101:00:00.0"))
    tag = complete(tree, pairs_plan()).tree
    assert pci_of(tag, "0001:00:00.0").get("link_speed") == "16.0 GT/s PCIe"
    assert pci_of(tag, "0001:00:00.0").get("link_width") == "8"
    assert pci_of(tag, "0101:00:00.0").get("link_speed") == GEN5[0]


@pytest.mark.parametrize("speed", ["", "Unknown", "Unknown speed", "32.0 GT"])
def test_a_link_that_nccl_cannot_read_is_that_of_the_place(speed: str) -> None:
    tree = complete(flat(gpu(0, "0001:00:00.0", speed, "255")), pairs_plan()).tree
    assert pci_of(tree, "0001:00:00.0").get("link_speed") == GEN5[0]
    assert pci_of(tree, "0001:00:00.0").get("link_width") == "16"


def test_without_a_place_s_link_it_is_that_of_the_product() -> None:
    assert link_by_device(gpu(0, "0001:00:00.0", vendor="0x10de", device="0x2330")) == Link(*GEN5)
    assert link_by_device(gpu(0, "0001:00:00.0", vendor="0x10de", device="0x20b2")).speed == "16.0 GT/s PCIe"
    connectx6 = nic("ib0", "0101:00:00.0", 200000, vendor="0x15b3", device="0x101b")
    assert link_by_device(connectx6).speed == "16.0 GT/s PCIe"


@pytest.mark.parametrize(("mbps", "speed"), [(100000, "8.0"), (200000, "16.0"), (400000, "32.0"), (800000, "64.0")])
def test_a_virtual_function_gets_the_least_link_that_carries_its_port(mbps: int, speed: str) -> None:
    virtual = nic("ib0", "0101:00:00.0", mbps, vendor="0x15b3", device="0x101e")
    assert link_by_device(virtual) == Link(f"{speed} GT/s PCIe", "16")


def test_a_switch_of_which_nothing_is_known_has_the_best_link_of_its_devices() -> None:
    tree = flat(nic("ib0", "0101:00:00.0", 100000), gpu(0, "0001:00:00.0"))
    plan = Plan({bus: Place(0, (Switch("s"),)) for bus in ("0001:00:00.0", "0101:00:00.0")})
    assert pci_of(complete(tree, plan).tree, "ffff:ff:01.0").get("link_speed") == GEN5[0]


def test_devices_without_a_place_stay_where_the_guest_shows_them() -> None:
    tree = flat(*four_pairs().children[0].children, nic("eth9", "0000:00:05.0", 10000))
    completed_tree = complete(tree, pairs_plan())
    assert ways(completed_tree.tree)["0000:00:05.0"] == ("-1",)
    assert "left eth9 where the guest shows it" in completed_tree.done


def test_bridges_of_the_guest_go_with_the_devices_below_them() -> None:
    root = element(
        "pci", gpu(0, "0001:00:00.0"), busid="0000:00:04.0", class_="0x060400", link_speed="", link_width="0"
    )
    tree = complete(flat(root), pairs_plan()).tree
    assert "0000:00:04.0" not in {node.get("busid") for node in tree.walk()}


def test_numa_nodes_of_the_host_get_the_cpus_of_the_guest_s_of_that_number() -> None:
    tree = complete(four_pairs(), pairs_plan(), masks={0: "ffff", 1: "ffff0000"}).tree
    assert {cpu.get("numaid"): cpu.get("affinity") for cpu in tree.having("cpu")} == {"0": "ffff", "1": "ffff0000"}
    tree = complete(four_pairs(), pairs_plan(), masks={0: "ffff"})
    assert tree.tree.having("cpu")[1].get("affinity") is None, "NCCL looks for itself"
    assert any("NUMA node 1 is the host's" in sentence for sentence in tree.done)


def test_a_plan_for_another_machine_is_refused() -> None:
    with pytest.raises(VirtualError, match="none of the places"):
        complete(four_pairs(), Plan({"0042:00:00.0": Place(0)}))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any place for any of the four pairs: 0 to 3 switches above, shared or not, 1 to 4 NUMA nodes."""
    places = {}
    for bus in (*range(1, 5), *range(0x101, 0x105)):
        if draw(st.booleans()) or bus == 1:
            numa = draw(st.integers(0, 3))
            keys = draw(st.lists(st.integers(0, 3), max_size=3, unique=True))
            way = tuple(Switch(f"{numa} {'.'.join(map(str, keys[: depth + 1]))}") for depth in range(len(keys)))
            places[f"{bus:04x}:00:00.0"] = Place(numa, way, draw(st.none() | st.just(Link(*GEN5))))
    return Plan(places)


@given(plans())
def test_whatever_the_plan_no_device_is_lost_and_no_bus_id_stands_twice(plan: Plan) -> None:
    tree = four_pairs()
    tag = complete(tree, plan).tree
    ids = [node.get("busid") for node in tag.walk() if node.tag == "pci"]
    assert len(set(ids)) == len(ids)
    assert set(ways(tag)) == set(ways(tree))
    for bus_id, place in plan.places.items():
        numa, *above = ways(tag)[bus_id]
        assert numa == str(place.numa)
        assert len(above) == len(place.switches)
        assert not set(above) & set(ways(tree))


# --- from a capture of the host -----------------------------------------------------------------------------


def node_of(name: str) -> Node:
    return node_at(f"fixture:{name}")


@pytest.fixture(scope="module")
def host() -> Node:
    return node_of("dgx-h100-healthy")


@pytest.fixture(scope="module")
def guest_node() -> Node:
    return node_of("vm-flat-pci")


@pytest.fixture(scope="module")
def guest(guest_node: Node) -> Guest:
    return guest_of(tree_of(guest_node, {}).tree)


COMPUTE = (0, 3, 4, 5, 6, 9, 10, 11)
MAP = {f"GPU{at}": f"GPU{at}" for at in range(8)} | {f"mlx5_ib{at}": f"mlx5_{nic}" for at, nic in enumerate(COMPUTE)}


def completed(guest_node: Node, host: Node) -> Element:
    tree = tree_of(guest_node, {}).tree
    virtual_machine = guest_of(tree, guest_node.pci)
    return complete(
        tree, plan_by_host(virtual_machine, host, read_pairs(virtual_machine, host, MAP)), taken=guest_node.pci
    ).tree


def same_switches(tree: Element, one: str, other: str) -> int:
    a, b = ways(tree)[one], ways(tree)[other]
    return sum(x == y for x, y in zip(a[1:], b[1:], strict=False))


def test_a_host_s_pci_tree_gives_each_pair_the_switches_that_it_shares_there(guest_node: Node, host: Node) -> None:
    tree = completed(guest_node, host)
    assert same_switches(tree, "0001:00:00.0", "0101:00:00.0") == 1
    assert same_switches(tree, "0001:00:00.0", "0102:00:00.0") == 0
    assert ways(tree)["0001:00:00.0"][0] == "0"
    assert ways(tree)["0008:00:00.0"][0] == "1"
    switch = pci_of(tree, ways(tree)["0001:00:00.0"][1])
    assert (switch.get("vendor"), switch.get("device")) == ("0x1000", "0xc030"), "NCCL flattens switches by their ids"


def test_a_host_that_has_handed_its_gpus_to_guests_still_tells_where_they_sit(guest_node: Node, host: Node) -> None:
    by_bus = {f"GPU{gpu.index}": gpu.bus_id or "" for gpu in host.gpus}
    words = MAP | {f"GPU{at}": by_bus[f"GPU{at}"] for at in range(8)}
    bare = replace(host, gpus=(), links=())
    tree = tree_of(guest_node, {}).tree
    virtual_machine = guest_of(tree)
    assert ways(
        complete(tree, plan_by_host(virtual_machine, bare, read_pairs(virtual_machine, bare, words))).tree
    ) == ways(completed(guest_node, host))


def test_a_dump_of_the_host_does_as_well(guest_node: Node, host: Node) -> None:
    dump = replace(host, nccl_file=NcclFile("host.xml", tree_of(host, {}).tree))
    assert ways(completed(guest_node, dump)) == ways(completed(guest_node, host))


def test_pairs_are_found_by_uuids_and_guids(guest_node: Node, guest: Guest, host: Node) -> None:
    uuids = {gpu.index: gpu.uuid for gpu in host.gpus}
    guids = {f"mlx5_ib{at}": next(n for n in host.nics if n.rdma_name == f"mlx5_{nic}").node_guid
             for at, nic in enumerate(COMPUTE)}  # fmt: skip
    swapped = {0: 7, 7: 0}
    moved = replace(
        guest_node,
        gpus=tuple(replace(gpu, uuid=uuids[swapped.get(gpu.index, gpu.index)]) for gpu in guest_node.gpus),
        nics=tuple(replace(nic, node_guid=guids.get(nic.name, nic.node_guid)) for nic in guest_node.nics),
    )
    pairs = find_pairs(guest, moved, host)
    bus = {gpu.index: gpu.bus_id for gpu in host.gpus}
    assert pairs.host_of["0001:00:00.0"] == bus[7]
    assert pairs.host_of["0002:00:00.0"] == bus[1]
    assert len(pairs.host_of) == 16


def test_a_mark_that_two_devices_share_pairs_nothing(guest_node: Node, guest: Guest, host: Node) -> None:
    one = Fact("GPU-00000000-0000-0000-0000-000000000001")
    doubled = replace(host, gpus=tuple(replace(gpu, uuid=one) for gpu in host.gpus))
    with pytest.raises(VirtualError, match=r"no UUID or GUID .* GPU0, GPU1, GPU2, GPU3 and 12 more: name the pairs"):
        find_pairs(guest, guest_node, doubled)


def test_equal_bus_ids_pair_themselves_where_all_are_of_the_same_kind(host: Node) -> None:
    same = guest_of(tree_of(host, {}).tree)
    bare = replace(host, gpus=tuple(replace(gpu, uuid=Fact()) for gpu in host.gpus))
    pairs = find_pairs(same, bare, host)
    assert pairs.by == "bus ids are the same in guest and host"
    assert all(mine == theirs for mine, theirs in pairs.host_of.items())


def test_a_virtual_function_sits_where_its_card_does(host: Node) -> None:
    virtual_machine = guest_of(four_pairs())
    plan = plan_by_host(virtual_machine, host, Pairs({"0001:00:00.0": "0000:1b:00.0", "0002:00:00.0": "0000:43:00.0",
                                           "0003:00:00.0": "0000:52:00.0", "0004:00:00.0": "0000:61:00.0",
                                           "0101:00:00.0": "0000:18:00.3"}))  # fmt: skip
    shared = {switch.key for switch in plan.places["0001:00:00.0"].switches}
    assert {switch.key for switch in plan.places["0101:00:00.0"].switches} <= shared


@examples("words", "message")
def test_pairs_that_do_not_fit_are_told_in_one_sentence(
    guest: Guest, host: Node, words: dict[str, str], message: str
) -> None:
    with pytest.raises(VirtualError, match=message):
        plan_by_host(guest, host, read_pairs(guest, host, words))


def without_ids(element: Element) -> tuple[object, ...]:
    """A tree whatever its bus ids and the order of siblings are, without links to switches that are not there."""
    texts = {"busid", "target"}
    below = sorted((without_ids(child) for child in element.children if child.tag != "pcilink"), key=repr)
    return element.tag, tuple((n, v) for n, v in element.attributes if n not in texts), tuple(below)


def mapped(tree: Element, change: Callable[[str, str], str]) -> Element:
    """The tree with every attribute's value changed."""
    attributes = tuple((name, change(name, value)) for name, value in tree.attributes)
    return replace(tree, attributes=attributes, children=tuple(mapped(child, change) for child in tree.children))


def flattened(host: Element) -> tuple[Element, dict[str, str]]:
    """The devices of a host in a guest that shows neither switches nor links, and the host's bus ids by the guest's."""
    devices = [node for node in host.walk() if node.having("gpu") or node.having("nic")]
    pairs = {f"{at + 1:04x}:00:00.0": pci.get("busid") or "" for at, pci in enumerate(devices)}
    ids = {theirs: mine for mine, theirs in pairs.items()}
    hidden = {"link_speed": "", "link_width": "0"}
    seen = [mapped(pci, lambda name, value: hidden.get(name, ids.get(value, value))) for pci in devices]
    arch = tuple((name, value) for name, value in host.children[0].attributes if name not in ("numaid", "affinity"))
    cpu = Element("cpu", (("numaid", "-1"), *arch), tuple(seen))
    return element("system", cpu, version=1), pairs


def whole_again(host: Element) -> Element:
    guest, pairs = flattened(host)
    node = Node("host", nccl_file=NcclFile("host.xml", host))
    return complete(guest, plan_by_host(guest_of(guest), node, Pairs(pairs))).tree


@given(machines())
def test_any_host_that_was_flattened_is_made_whole_again_by_its_capture(machine: Element) -> None:
    readable = {("link_speed", ""): GEN5[0], ("link_width", "0"): GEN5[1]}
    host = mapped(machine, lambda name, value: readable.get((name, value), value))
    bare = replace(host, children=tuple(
        replace(cpu, attributes=tuple((n, v) for n, v in cpu.attributes if n != "affinity")) for cpu in host.children
    ))  # fmt: skip
    assert without_ids(whole_again(host)) == without_ids(bare)


def test_switches_that_are_joined_on_the_host_are_joined_by_their_new_bus_ids() -> None:
    """Broadcom's links between switches (pcilink) name the other one, on both ends."""
    first, second = (
        {"busid": bus, "class_": "0x060400", "link_speed": GEN5[0], "link_width": 16} for bus in ("a", "b")
    )
    host = flat(
        element("pci", gpu(0, "0000:01:00.0", *GEN5), element("pcilink", target="b"), **first),
        element("pci", gpu(1, "0000:02:00.0", *GEN5), element("pcilink", target="a"), **second),
        numa=0,
    )
    tag = whole_again(host)
    switches = {node.get("busid"): [link.get("target") for link in node.having("pcilink")] for node in tag.walk()
                if node.having("pcilink")}  # fmt: skip
    assert switches == {"ffff:ff:01.0": ["ffff:ff:02.0"], "ffff:ff:02.0": ["ffff:ff:01.0"]}


@pytest.mark.parametrize("name", ["dgx-h100-healthy", "hgx-a100", "hgx-b200", "dgx1v-hybrid-mesh"])
def test_nccl_decides_on_a_guest_made_whole_as_it_does_on_the_host(name: str) -> None:
    host = clean(tree_of(node_of(name), {}).tree, 28).tree
    want, have = predict_tree(host, nodes=2), predict_tree(whole_again(host), nodes=2)
    assert [replace(graph, orders=()) for graph in have.graphs] == [replace(graph, orders=()) for graph in want.graphs]
    assert have.choices == want.choices
    assert have.channels == want.channels


def test_functions_that_are_not_in_the_evidence_have_no_place(host: Node) -> None:
    assert places_of(host, ["0000:77:00.0"]).children == ()
