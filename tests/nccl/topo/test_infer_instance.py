"""Which instance type a topology file without GPUs is of, by its layout and its bus ids."""

from collections.abc import Iterable

import pytest

from tests.nccl.guests import flat, four_pairs, gpu, nic, ways
from tests.nccl.small_trees import GEN4, GEN5, cpu, element, host
from topodiag.hardware import catalog
from topodiag.hardware.specs import InstanceSpec
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.infer_instance import instance_of_file, plan_by_instance
from topodiag.nccl.topo.virtual import VirtualError, complete, guest_of

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
