"""Guests: which instance type a file is of, and where their devices are; a dump made fit to be used as a file."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.guests import flat, four_pairs, gpu, nic, ways
from tests.nccl.small_trees import GEN4, GEN5, cpu, element, host, pci
from tests.nccl.small_trees import host as system
from tests.topologies import clean
from topodiag.hardware import catalog
from topodiag.hardware.specs import InstanceSpec
from topodiag.model.links import Affinity
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.clean import UnfitError, hosts_of
from topodiag.nccl.topo.infer_instance import instance_of_file, plan_by_instance
from topodiag.nccl.topo.virtual import Guest, Plan, VirtualError, complete, guest_of
from topodiag.nccl.topo.virtual_affinity import STEP, plan_by_affinity

NDV4 = (("0001", "0002"), ("0003", "0004"), ("000b", "000c"), ("000d", "000e"))
NDV5 = tuple((f"{number:04x}",) for number in range(1, 9))


def function(bus: str, kind: str, speed: str) -> Element:
    return element("pci", busid=bus, class_=kind, link_speed=speed, link_width=16)


def cloud(groups: tuple[tuple[str, ...], ...], speed: str, *, numas: int = 2, bus: str = "{}:00:00.0") -> Element:
    """A switch for each group of GPUs, with as many NICs, whose domains are 0101 and following."""
    switches, number = [], 0
    for at, gpus in enumerate(groups):
        below = []
        for domain in gpus:
            number += 1
            below.append(function(bus.format(domain), "0x030200", speed))
            below.append(function(bus.format(f"01{number:02x}"), "0x020700", speed))
        switches.append(
            element("pci", *below, busid=f"ffff:ff:0{at + 1}.0", class_="0x060400", link_speed=speed, link_width=16)
        )
    share = len(switches) // numas
    return host(*(cpu(numa, *switches[numa * share : numa * share + share]) for numa in range(numas)))


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (cloud(NDV4, "16 GT/s", numas=4), "ND96asr_v4"),
        (cloud(NDV4, GEN4, numas=1), "ND96asr_v4"),  # an older file of the same type: all below one processor
        (cloud(NDV5, GEN5), "ND96isr_H100_v5"),
        (cloud(NDV5, "32 GT/s"), "ND96isr_H100_v5"),
        (cloud(NDV5, GEN4), None),  # NICs and GPUs one by one, of an older generation
        (cloud(NDV4, GEN5), None),
        (cloud(NDV5[:4], GEN5), None),
        (cloud(NDV5, GEN5, bus="0000:{0[1]}{0[3]}:00.0"), None),  # the layout of many clouds, with plain bus ids
        (host(cpu(0)), None),
    ],
)
def test_azures_layouts_are_known_by_their_bus_ids(tree: Element, expected: str | None) -> None:
    spec = instance_of_file(tree)
    assert (spec.name if spec else None) == expected


# --- A guest's flattened tree completed with the switches that its instance type has --------------------------


def machine(spec: InstanceSpec, order: Iterable[int] | None = None) -> Element:
    """A flat guest with the devices of an instance type, listed in any order."""
    devices = [gpu(at, f"{at + 1:04x}:00:00.0") for at in range(spec.gpus)]
    devices += [nic(f"rdma{at % 10}", f"{at + 0x101:04x}:00:00.0", 100000) for at in range(spec.nics)]
    return flat(*(devices[at] for at in order) if order is not None else devices)


@pytest.mark.parametrize("spec", catalog.instances(), ids=lambda spec: spec.name)
def test_devices_of_one_group_share_a_switch_and_no_others_do(spec: InstanceSpec) -> None:
    tree = machine(spec, reversed(range(spec.gpus + spec.nics)))
    paths = ways(complete(tree, plan_by_instance(guest_of(tree), spec)).tree)
    for group in spec.groups:
        own = {paths[f"{at + 1:04x}:00:00.0"] for at in group.gpus} | {
            paths[f"{at + 0x101:04x}:00:00.0"] for at in group.nics
        }
        assert len(own) == 1
        assert next(iter(own))[0] == str(group.numa)
        assert len(next(iter(own))) == (2 if group.switch else 1)
        others = {way for bus, way in paths.items() if way in own}
        assert (
            len([way for way in paths.values() if way in others]) == len(group.gpus) + len(group.nics)
            or not group.switch
        )


def test_a_guest_with_other_devices_than_its_type_is_refused() -> None:
    spec = catalog.instance_by_name("ND96isr_H100_v5")
    assert spec is not None
    with pytest.raises(VirtualError, match="has 8 GPUs and 8 compute NICs, and this machine has 4 GPUs and 4"):
        plan_by_instance(guest_of(four_pairs()), spec)


def test_a_further_nic_of_another_kind_is_not_counted() -> None:
    spec = catalog.instance_by_name("ND96isr_H100_v5")
    assert spec is not None
    tree = flat(*machine(spec).children[0].children, nic("eth9", "0000:00:05.0", 50000))
    plan = plan_by_instance(guest_of(tree), spec)
    assert "0000:00:05.0" not in plan.places
    assert len(plan.places) == 16


# --- places of a guest's devices by what was measured between its GPUs and its NICs


NEAR, SOCKET, FAR = 48.0, 37.0, 19.0


def guest(gpus: int = 8, nics: int = 8) -> Guest:
    def function(child: Element, bus: str) -> tuple[str, Element]:
        return bus, Element("pci", (("busid", bus),), (child,))

    def net(at: int) -> Element:
        return Element("nic", (), (Element("net", (("name", f"mlx5_{at}"),)),))

    return Guest(
        dict(function(Element("gpu", (("dev", str(at)),)), f"{at + 1:04x}:00:00.0") for at in range(gpus)),
        dict(function(net(at), f"{at + 0x101:04x}:00:00.0") for at in range(nics)),
        frozenset(),
    )


def measured(value: Callable[[int, int], float], gpus: int = 8, nics: int = 8, unit: str = "GB/s") -> Affinity:
    return Affinity(
        tuple(f"GPU{at}" for at in range(gpus)),
        tuple(f"mlx5_{at}" for at in range(nics)),
        tuple(tuple(value(gpu, nic) for nic in range(nics)) for gpu in range(gpus)),
        unit,
    )


def hgx(gpu: int, nic: int) -> float:
    return NEAR if gpu == nic else SOCKET if gpu // 4 == nic // 4 else FAR


def groups(plan: Plan) -> set[tuple[int | None, frozenset[str]]]:
    by_switch: dict[str, set[str]] = {}
    numa = {}
    for bus_id, place in plan.places.items():
        key = place.switches[0].key
        by_switch.setdefault(key, set()).add(bus_id)
        numa[key] = place.numa
    return {(numa[key], frozenset(members)) for key, members in by_switch.items()}


def pair(at: int) -> frozenset[str]:
    return frozenset({f"{at + 1:04x}:00:00.0", f"{at + 0x101:04x}:00:00.0"})


def test_a_gpu_and_the_nic_that_it_measures_best_share_a_switch_and_sockets_are_told_apart() -> None:
    assert groups(plan_by_affinity(guest(), measured(hgx))) == {(at // 4, pair(at)) for at in range(8)}


@given(st.lists(st.floats(0.97, 1.03), min_size=64, max_size=64))
def test_three_percent_of_scatter_change_nothing(noise: list[float]) -> None:
    scattered = measured(lambda gpu, nic: hgx(gpu, nic) * noise[gpu * 8 + nic])
    assert groups(plan_by_affinity(guest(), scattered)) == groups(plan_by_affinity(guest(), measured(hgx)))


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_of_latencies_the_lowest_is_the_nearest(unit: str) -> None:
    latency = measured(lambda gpu, nic: 100 / hgx(gpu, nic), unit=unit)
    assert groups(plan_by_affinity(guest(), latency)) == groups(plan_by_affinity(guest(), measured(hgx)))


def test_a_matrix_with_nics_as_its_rows_is_turned() -> None:
    upright = measured(hgx)
    turned = Affinity(upright.nics, upright.gpus, tuple(zip(*upright.values, strict=True)))
    assert groups(plan_by_affinity(guest(), turned)) == groups(plan_by_affinity(guest(), upright))


def test_several_gpus_and_nics_share_a_switch() -> None:
    plan = plan_by_affinity(guest(8, 4), measured(lambda gpu, nic: NEAR if gpu // 2 == nic else FAR, nics=4))
    assert len(groups(plan)) == 4
    assert len(plan.places) == 12
    assert {place.numa for place in plan.places.values()} == {0}
    assert any("do not tell sockets apart" in sentence for sentence in plan.done)


def test_the_guest_s_own_numa_nodes_are_kept_where_they_fit_the_sockets() -> None:
    numa = {f"{at + 1:04x}:00:00.0": (1 if at < 4 else 0) for at in range(8)}
    plan = plan_by_affinity(guest(), measured(hgx), numa)
    assert groups(plan) == {(1 - at // 4, pair(at)) for at in range(8)}
    contrary = {f"{at + 1:04x}:00:00.0": at % 2 for at in range(8)}
    assert groups(plan_by_affinity(guest(), measured(hgx), contrary)) == {(at // 4, pair(at)) for at in range(8)}


def test_a_nic_that_is_near_to_no_gpu_has_no_place() -> None:
    plan = plan_by_affinity(guest(4, 5), measured(lambda gpu, nic: NEAR if gpu == nic else FAR, 4, 5))
    assert "0105:00:00.0" not in plan.places


def test_a_matrix_without_a_step_says_nothing() -> None:
    with pytest.raises(VirtualError, match="all GPUs measure all NICs alike"):
        plan_by_affinity(guest(), measured(lambda gpu, nic: NEAR / (STEP - 0.01) if gpu == nic else NEAR))


def test_values_that_overlap_make_no_groups() -> None:
    def overlapping(gpu: int, nic: int) -> float:
        return NEAR if nic in (gpu, (gpu + 1) % 4) else FAR

    with pytest.raises(VirtualError, match=r"make no groups: GPU0 and GPU1 .* mlx5_1"):
        plan_by_affinity(guest(4, 4), measured(overlapping, 4, 4))


def test_every_gpu_of_the_guest_has_to_be_measured() -> None:
    with pytest.raises(VirtualError, match="GPU7 was not measured"):
        plan_by_affinity(guest(), measured(hgx, gpus=7))


@pytest.mark.parametrize(("gpus", "nics", "message"), [(7, 8, "no GPU GPU7"), (8, 7, "no NIC mlx5_7")])
def test_a_name_of_no_device_of_the_guest_is_told(gpus: int, nics: int, message: str) -> None:
    with pytest.raises(VirtualError, match=message):
        plan_by_affinity(guest(gpus, nics), measured(hgx))


def small_gpu(dev: int, rank: int, links: int = 1) -> Element:
    nvlinks = (element("nvlink", target=f"0000:0{n % 8}:00.0", count=2, tclass="0x068000") for n in range(links))
    return element("gpu", *nvlinks, dev=dev, sm=90, rank=rank, gdr=1, keep=1, mlopart=-1)


def net(name: str, dev: int) -> Element:
    return element("nic", element("net", name=name, dev=dev, speed=400000, keep=1, gin=1, rma=1))


def small_host(hash_: str, first: int, links: int = 1, gpus: int = 2) -> Element:
    branches = [pci(f"{first + n:02x}", small_gpu(n, first + n, links), speed="") for n in range(gpus)]
    branches += pci("f0", net("mlx5_0", first * 4 + 1), speed=""), pci("f1", pci("f2", speed=""), speed="")
    return element("cpu", *branches, numaid=0, host_hash=hash_, arch="x86_64")


def names(tree: Element) -> set[str]:
    return {name for element in tree.walk() for name, _ in element.attributes}


def test_what_belongs_to_one_run_goes() -> None:
    tree = clean(system(small_host("0xa", 0)), 28)
    assert not {"rank", "keep", "host_hash", "mlopart", "gin"} & names(tree.tree)
    assert any("rank" in sentence for sentence in tree.done)


def test_attributes_of_the_newest_version_stay_for_it() -> None:
    assert {"gin", "rma", "mlopart"} <= names(clean(system(small_host("0xa", 0)), 30).tree)
    assert "rma" not in names(clean(system(small_host("0xa", 0)), 29).tree)


def test_attributes_that_no_nccl_reads_go_before_they_are_too_long_for_its_parser() -> None:
    cpu = replace(small_host("0xa", 0), attributes=(*small_host("0xa", 0).attributes, ("note", "x" * 300)))
    tree = clean(system(cpu), 28)
    assert "note" not in names(tree.tree)
    assert any("does not read from a file" in sentence and "note" in sentence for sentence in tree.done)


@pytest.mark.parametrize(
    ("child", "class_"),
    [(small_gpu(0, 0), "0x030200"), (net("mlx5_0", 0), "0x020000"), (pci("b", small_gpu(0, 0)), "0x060400")],
)
def test_a_class_that_is_not_said_is_that_of_what_is_on_the_function(child: Element, class_: str) -> None:
    function = element("pci", child, busid="0000:09:00.0")
    cleaned = clean(system(element("cpu", function, pci("0a", small_gpu(1, 1)), numaid=0)), 28).tree
    assert cleaned.children[0].children[0].get("class") == class_


def test_one_node_is_cut_out_of_a_dump_of_several_hosts() -> None:
    tree = system(small_host("0xa", 0), small_host("0xb", 2))
    assert hosts_of(tree) == ["0xa", "0xb"]
    first = clean(tree, 28)
    assert sum(element.tag == "gpu" for element in first.tree.walk()) == 2
    second = clean(tree, 28, host="0xb")
    assert "0000:02:00.0" in {element.get("busid") for element in second.tree.walk()}


def test_an_unknown_host_is_named_with_those_that_are_there() -> None:
    with pytest.raises(UnfitError, match="no host 0xc in this file; there are 0xa, 0xb"):
        clean(system(small_host("0xa", 0), small_host("0xb", 2)), 28, host="0xc")


def test_the_nics_of_a_host_are_numbered_from_0() -> None:
    element = clean(system(small_host("0xa", 0)), 28).tree
    assert [element.get("dev") for element in element.walk() if element.tag == "net"] == ["0"]


def test_branches_without_a_gpu_and_without_a_nic_go() -> None:
    element = clean(system(small_host("0xa", 0)), 28).tree
    assert "0000:f1:00.0" not in {element.get("busid") for element in element.walk()}


def test_links_to_nvswitches_are_joined_only_when_the_limit_asks_for_it() -> None:
    tree = system(small_host("0xa", 0, links=20, gpus=16))
    few = clean(tree, 20).tree
    assert sum(element.tag == "nvlink" for element in few.walk()) == 320, "2.20 takes 1024 elements"
    many = clean(tree, 28)
    assert sum(element.tag == "nvlink" for element in many.tree.walk()) == 16
    assert {element.get("count") for element in many.tree.walk() if element.tag == "nvlink"} == {"40"}


def test_what_no_version_could_load_is_refused() -> None:
    with pytest.raises(UnfitError, match="takes 256"):
        clean(system(small_host("0xa", 0, gpus=130)), 28)
    with pytest.raises(UnfitError, match="no GPU"):
        clean(system(), 28)
    with pytest.raises(UnfitError, match="has 42 children, and NCCL takes 32"):
        clean(system(small_host("0xa", 0, gpus=41)), 20)


def test_cleaning_twice_changes_nothing() -> None:
    once = clean(system(small_host("0xa", 0), small_host("0xb", 2)), 28).tree
    again = clean(once, 28)
    assert again.tree == once
    assert again.done == ()
