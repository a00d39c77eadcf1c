"""`lstopo --of console`: PCI functions with their NUMA nodes, GPUs and NICs by name."""

from __future__ import annotations

from tests.evidence.filled import node_of, recognises
from tests.tables import texts
from topodiag.model.maker import makers_of
from topodiag.words.dialect import Maker

TEXTS = texts(__file__)
TEXT = TEXTS["text"]


def test_devices_have_their_place_and_name() -> None:
    node = node_of(TEXT)
    assert [(gpu.index, gpu.bus_id) for gpu in node.gpus] == [(0, "0000:05:00.0"), (1, "0000:85:00.0")]
    assert {bus: device.numa.value for bus, device in node.pci.items()} == {
        "0000:05:00.0": 0, "0000:08:00.0": 0, "0000:01:00.0": 0, "0000:85:00.0": 1,
    }  # fmt: skip
    assert [(nic.rdma_name, nic.bus_id) for nic in node.nics] == [("ionic_0", "0000:08:00.0")]
    assert makers_of(node) == {Maker.AMD}


def test_gpus_of_nvml_are_nvidias() -> None:
    node = node_of(TEXT.replace("GPU(RSMI)", "GPU(NVML)").replace("rsmi", "nvml"))
    assert makers_of(node) == {Maker.NVIDIA}


def test_a_machine_without_devices_is_left_to_others() -> None:
    assert not recognises("lstopo", "Machine (16GB total)\n  Package L#0\n    PU L#0 (P#0)\n")
    assert not recognises("lstopo", "Machine is broken\n  PCI 05:00.0 (VGA)\n")
