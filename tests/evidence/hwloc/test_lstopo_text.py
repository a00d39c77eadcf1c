"""`lstopo --of console`: PCI functions with their NUMA nodes, GPUs and NICs by name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import node_of, recognises
from topodiag.evidence.hwloc.hwloc_xml import LstopoText
from topodiag.evidence.interface import Blob
from topodiag.model.maker import makers_of
from topodiag.words.dialect import Maker

TEXT = """\
Machine (1511GB total)
  Package L#0
    NUMANode L#0 (P#0 755GB)
    L3 L#0 (32MB) + Core L#0 + PU L#0 (P#0)
    HostBridge
      PCIBridge
        PCIBridge
          PCI 05:00.0 (ProcessingAccelerator)
            CoProc(OpenCL) "opencl0d0"
            GPU(RSMI) "rsmi0"
        PCI 08:00.0 (Ethernet)
          Net "ens1"
          OpenFabrics "ionic_0"
      PCI 01:00.0 (VGA)
  Package L#1
    NUMANode L#1 (P#1 755GB)
    HostBridge
      PCI 85:00.0 (Display)
        GPU(RSMI) "rsmi1"
"""


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


@given(st.text(alphabet='Machine PCI 05:.0()"rsmi\n#NUOL', max_size=300))
def test_any_text_is_read_without_an_exception(text: str) -> None:
    LstopoText().parse(Blob("any.txt", ("Machine (1GB)\n" + text).encode()))
