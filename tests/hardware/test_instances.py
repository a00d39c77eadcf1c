"""The published layouts of instance types hold together."""

from pathlib import Path

import pytest

from topodiag.hardware import catalog
from topodiag.hardware.specs import InstanceSpec

INSTANCES = catalog.instances()


@pytest.mark.parametrize("spec", INSTANCES, ids=lambda spec: spec.name)
def test_every_gpu_and_every_nic_is_in_one_group(spec: InstanceSpec) -> None:
    assert sorted(at for group in spec.groups for at in group.gpus) == list(range(spec.gpus))
    assert sorted(at for group in spec.groups for at in group.nics) == list(range(spec.nics))
    assert spec.source


@pytest.mark.parametrize("spec", INSTANCES, ids=lambda spec: spec.name)
def test_links_are_pcie_links(spec: InstanceSpec) -> None:
    for gen, width in (spec.gpu_link, spec.nic_link, spec.switch_link):
        assert catalog.pcie_nccl_gbs(gen, width) is not None


@pytest.mark.parametrize("spec", INSTANCES, ids=lambda spec: spec.name)
def test_the_layout_fits_the_machine_of_that_name(spec: InstanceSpec) -> None:
    for name in (spec.name, *spec.names):
        machine = next((system for system in catalog.systems() if name in (system.name, *system.product_names)), None)
        if machine is None:
            assert " " in name, "only the series of a provider may be unknown as machines"
            continue
        assert machine.gpus == spec.gpus
        assert spec.nics in (0, machine.compute_nics)
        assert len({group.numa for group in spec.groups}) >= machine.sockets


def test_no_name_stands_for_two_layouts() -> None:
    names = [name.lower() for spec in INSTANCES for name in (spec.name, *spec.names)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("text", ["nd96isr_h200_v5", "Standard_ND96isr_H200_v5", " ND96isr_H200_v5 "])
def test_a_type_is_found_by_any_of_its_names_and_keeps_the_one_asked_for(text: str) -> None:
    spec = catalog.instance_by_name(text)
    assert spec.name == "ND96isr_H200_v5"


def test_every_type_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "emit.md").read_text()
    names = [name for spec in INSTANCES for name in (spec.name, *spec.names) if " " not in name]
    assert [name for name in names if name.split(".")[0] not in guide] == []


def test_an_unknown_name_finds_nothing() -> None:
    assert catalog.instance_by_name("p9.96xlarge") is None
