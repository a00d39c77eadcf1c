"""A guest's flattened tree completed with the switches that its instance type has."""

from collections.abc import Iterable

import pytest

from tests.nccl.guests import flat, four_pairs, gpu, nic, ways
from topodiag.hardware import catalog
from topodiag.hardware.specs import InstanceSpec
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.infer_instance import plan_by_instance
from topodiag.nccl.topo.virtual import VirtualError, complete, guest_of


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
