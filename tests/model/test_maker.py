from dataclasses import replace

import pytest

from tests.checks.jobs import job
from tests.tables import examples
from topodiag.model.bench import BenchDevice, BenchRun
from topodiag.model.devices import Gpu, PciDevice
from topodiag.model.events import Event
from topodiag.model.job import Event as JobEvent
from topodiag.model.maker import dialect_of, maker_named, makers_of, run_maker
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Origin
from topodiag.words.dialect import AMD, NVIDIA, Maker


def event(kind: str) -> Event:
    return Event(kind, "", "", Origin("dmesg", 1))


def function(bus_id: str, vendor: int, code: int) -> dict[str, PciDevice]:
    return {bus_id: PciDevice(bus_id, class_code=Fact(code), vendor=Fact(vendor))}


@examples("name", "maker")
def test_a_product_names_its_maker(name: str, maker: Maker | None) -> None:
    assert maker_named(name) is maker


@pytest.mark.parametrize(
    ("node", "makers"),
    [
        (Node("n"), set()),
        (Node("n", events=(event("amdgpu"),)), {Maker.AMD}),
        (Node("n", events=(event("xid"),)), {Maker.NVIDIA}),
        (Node("n", events=(event("hung-task"),)), set()),
        (Node("n", smi_matrix={("GPU0", "GPU1"): Fact("XGMI")}), {Maker.AMD}),
        (Node("n", smi_matrix={("GPU0", "GPU1"): Fact("NV18")}), {Maker.NVIDIA}),
        (Node("n", smi_matrix={("GPU0", "GPU1"): Fact("NV18"), ("GPU0", "GPU2"): Fact("XGMI")}), set(Maker)),
        (Node("n", gpus=(Gpu(0, name=Fact("AMD Instinct MI250X")),)), {Maker.AMD}),
        (Node("n", pci=function("0000:05:00.0", 0x1002, 0x120000)), {Maker.AMD}),
        # The graphics of a CPU on a node with NVIDIA's GPUs: no GPU of a job.
        (Node("n", pci=function("0000:c4:00.0", 0x1002, 0x030000), makers=frozenset({Maker.NVIDIA})), {Maker.NVIDIA}),
        (Node("n", events=(event("amdgpu"), event("xid"))), {Maker.AMD, Maker.NVIDIA}),
    ],
)
def test_a_node_tells_whose_gpus_it_has(node: Node, makers: set[Maker]) -> None:
    assert makers_of(node) == makers
    assert dialect_of(node) is (AMD if makers == {Maker.AMD} else NVIDIA)


@examples("text", "versions", "dialect")
def test_a_job_without_a_library_is_of_amd_by_its_errors(text: str, versions: tuple[str, ...], dialect: str) -> None:
    events = (JobEvent("cuda", text, ""),)
    assert dialect_of(replace(job(1), events=events, nccl_versions=versions)) is (AMD if dialect == "AMD" else NVIDIA)


def test_a_run_is_of_the_maker_of_its_devices_or_of_its_program() -> None:
    device = BenchDevice(0, "n", 0, name="AMD Instinct MI300X")
    assert run_maker(BenchRun("all_reduce", (), devices=(device,))) is Maker.AMD
    assert run_maker(BenchRun("all_reduce", (), maker=Maker.AMD)) is Maker.AMD
    assert run_maker(BenchRun("all_reduce", ())) is None
