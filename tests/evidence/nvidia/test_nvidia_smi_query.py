"""What the checks of PCIe links say of `nvidia-smi --query-gpu`; what is read of it is in a table of readings."""

from tests.evidence.filled import node_of
from topodiag.checks.pcie.links import NarrowPcieLink, SlowPcieLink

HEADER = "index, pcie.link.width.current, pcie.link.width.max, utilization.gpu [%]"


def test_a_gpu_without_a_bus_id_has_its_pcie_link_all_the_same() -> None:
    machine = node_of(f"{HEADER}\n0, 16, 16, 97 %\n1, 8, 16, 98 %\n2, 16, 16, 97 %\n")
    function = machine.pci_of(machine.gpus[1])
    assert (function.width.value, function.max_width.value) == (8, 16)
    findings = NarrowPcieLink().judge(machine).findings
    assert [finding.where.gpus for finding in findings] == [("GPU1",)]


def test_gen1_of_a_gpu_at_rest_is_no_fault() -> None:
    header = "index, pcie.link.gen.current, pcie.link.gen.max, utilization.gpu [%]"
    assert not SlowPcieLink().judge(node_of(f"{header}\n0, 1, 4, 0 %\n1, 1, 4, 0 %\n")).findings
