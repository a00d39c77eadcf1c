"""PCI004: ACS redirection between peers, and a translating IOMMU."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.nodes import only, read, status
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.pcie.acs import AcsBetweenPeers
from topodiag.evidence.host.kernel_log import KernelLog
from topodiag.evidence.interface import Blob
from topodiag.model.devices import PciDevice
from topodiag.model.events import Event
from topodiag.model.finding import Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact

REDIRECTING = 0x1D
"""SrcValid, ReqRedir, CmpltRedir, UpstreamFwd: what a kernel with an IOMMU sets."""


def acs(node: Node) -> Any:
    return AcsBetweenPeers().judge(node, ())


def with_acs(node: Node, register: Callable[[PciDevice], Fact[int]], iommu: str = "identity") -> Node:
    """The node with ACS of every downstream port as given, and the IOMMU type of all devices."""
    pci = {
        key: replace(
            item, acs=register(item) if item.port_type.value == "downstream" else Fact(why="no ACS capability")
        )
        for key, item in node.pci.items()
    }
    ends = {device.bus_id for device in (*node.gpus, *node.nics)}
    pci = {key: replace(item, iommu_type=read(iommu, "sys-pci")) if key in ends else item for key, item in pci.items()}
    return replace(node, pci=pci)


def redirecting(value: int | str = REDIRECTING, iommu: str = "identity") -> Node:
    """An H100 machine with this in the register of all downstream ports, or the reason why it was not read."""
    register: Fact[int] = Fact(why=value) if isinstance(value, str) else read(value, "lspci")
    return with_acs(nodes.hgx_h100(), lambda _: register, iommu)


def one_root() -> Node:
    """All devices below root ports, without a switch."""
    flat = {key: replace(item, parent=None, root="pci0000:00") for key, item in nodes.hgx_h100().pci.items()}
    return with_acs(replace(network.ib_h100(), pci=flat), lambda _: read(REDIRECTING))


@examples("node", "changes", "wanted")
def test_peer_traffic_through_the_cpu(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(acs(machine(node, changes, redirecting=redirecting, one_root=one_root)), wanted) == wanted


def all_on(node: Node) -> Node:
    return with_acs(node, lambda _: read(REDIRECTING, "lspci"))


def test_redirection_between_a_gpu_and_its_nic_is_an_error() -> None:
    finding = only(acs(all_on(nodes.hgx_h100())))
    assert finding.severity is Severity.ERROR
    assert len(finding.where.links) == 16
    assert finding.where.links == tuple(sorted(finding.where.links))
    assert finding.where.gpus == tuple(f"GPU{at}" for at in range(8))
    assert finding.where.nics == tuple(f"mlx5_{at}" for at in range(8))
    assert finding.message.endswith("peer traffic of GPU0-7, mlx5_0-7 goes through the CPU")
    assert "setpci" in finding.fix[1]
    assert finding.evidence[0].source == "lspci"


def test_root_ports_do_not_count() -> None:
    node = with_acs(nodes.hgx_h100(), lambda _: read(0))
    pci = {
        key: replace(item, acs=read(REDIRECTING)) if item.port_type.value == "root-port" else item
        for key, item in node.pci.items()
    }
    assert status(acs(replace(node, pci=pci))) == "clean"


def test_ports_between_gpus_that_nvlink_joins_do_not_matter() -> None:
    node = nodes.hgx_h100()
    # All GPUs below one switch, no NIC: their data never takes PCIe.
    top = node.pci[str(node.pci[str(node.pci[str(node.gpus[0].bus_id)].parent)].parent)].bus_id
    pci = dict(node.pci)
    for card in node.gpus:
        port = str(pci[str(card.bus_id)].parent)
        pci[port] = replace(pci[port], parent=top)
    joined = all_on(replace(node, pci=pci, nics=()))
    assert status(acs(joined)) == "clean"
    machine = replace(
        joined, paths={pair: replace(path, type=nodes.PathType.PXB) for pair, path in joined.paths.items()}
    )
    assert only(acs(machine)).where.gpus == tuple(f"GPU{at}" for at in range(8))


# --- faults ---------------------------------------------------------------------------------------------------


def fault(text: str, bus_id: str | None) -> Event:
    (event,) = KernelLog().parse(Blob("dmesg", text.encode())).records
    return replace(event, fields={**event.fields, "bus_id": bus_id or ""})


AMD = "nvidia 0000:42:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x39 address=0xb5a00000 flags=0x30]"
INTEL = "DMAR: [DMA Write] Request device [3b:00.0] fault addr fffff000 [fault reason 05] PTE Write access is not set"


def test_faults_of_a_gpu_are_an_error_by_the_kernel_log_alone() -> None:
    outcome = acs(Node("rig", events=(fault(AMD, "0000:42:00.0"), fault(AMD, "0000:42:00.0"))))
    expect(outcome, severity="ERROR", confidence="MEDIUM", message="the IOMMU refused 2 accesses of 0000:42:00.0*")
    assert only(acs(Node("rig", events=(fault(AMD, "0000:42:00.0"),)))).severity is Severity.WARNING


def test_a_fault_that_names_no_driver_is_a_gpus_where_the_evidence_holds_the_gpu() -> None:
    node = nodes.hgx_h100()
    expect(acs(replace(node, events=(fault(INTEL, node.gpus[0].bus_id),))), gpus=("GPU0",))


@pytest.mark.parametrize("bus_id", ["0000:3b:00.0", None])
def test_a_fault_of_a_device_whose_kind_nothing_shows_is_no_evidence(bus_id: str | None) -> None:
    assert status(acs(Node("rig", events=(fault(INTEL, bus_id),)))) == "not_applicable"
    disk = "nvme 0000:3b:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x39 address=0xb5a00000 flags=0x30]"
    assert status(acs(Node("rig", events=(fault(disk, bus_id),)))) == "not_applicable"
