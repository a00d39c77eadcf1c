"""PCI001 to PCI004: lanes and generations of links, errors and replays, traffic of peers through the CPU."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.networks import with_pci
from tests.checks.nodes import only, read, status
from tests.checks.wanted import Wanted, expect, shown
from tests.evidence.filled import node_of
from tests.tables import examples, texts
from topodiag.api import diagnose
from topodiag.app.topo import check_topology
from topodiag.checks.pcie.acs import AcsBetweenPeers
from topodiag.checks.pcie.errors import PcieErrors
from topodiag.checks.pcie.hops import hops
from topodiag.checks.pcie.links import NarrowPcieLink, SlowPcieLink
from topodiag.checks.registry import Subject, check_of
from topodiag.evidence.host.kernel_log import KernelLog
from topodiag.evidence.interface import Blob
from topodiag.model.devices import Gpu, NicRole, PciDevice
from topodiag.model.events import Event
from topodiag.model.finding import Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact

IDLE: dict[str, Any] = {"utilization": read(0), "pstate": read(8), "throttle": read(("gpu_idle",))}
BUSY: dict[str, Any] = {"utilization": read(97, "nvml"), "pstate": read(0), "throttle": read(())}


def narrow(node: Node) -> Any:
    return NarrowPcieLink().judge(node, ())


def slow(node: Node) -> Any:
    return SlowPcieLink().judge(node, ())


def tree(node: Node, **uplinks: Any) -> Node:
    """The node with every port of its PCIe tree able and trained as the devices."""
    device = next(function for function in node.pci.values() if function.width.known)
    facts = {"width": device.width, "max_width": device.max_width, "gen": device.gen, "max_gen": device.max_gen}
    pci = {key: replace(item, **(facts | uplinks)) if item.port_type.known else item for key, item in node.pci.items()}
    return replace(node, pci=pci)


def h100(**gpu: Any) -> Node:
    return nodes.with_gpus(tree(network.ib_h100()), **(gpu or IDLE))


def bus(node: Node, gpu: int) -> str:
    device = node.gpu(gpu)
    assert device.bus_id is not None
    return device.bus_id


def busy() -> Node:
    return h100(**BUSY)


def card_alone() -> Node:
    """AWS gives T4 and A10G eight lanes; `nvidia-smi -q` of such a guest says x8 of x16."""
    card = PciDevice("0000:00:1e.0", width=read(8), max_width=read(16), gen=read(3), max_gen=read(3))
    return Node("g4dn", gpus=(Gpu(0, card.bus_id, name=read("Tesla T4")),), pci={card.bus_id: card})


def nic_alone() -> Node:
    card = PciDevice("0000:17:00.0", width=read(16), max_width=read(16), gen=read(4), max_gen=read(5))
    return Node("n", nics=(nodes.nic(0, 0, bus_id=card.bus_id),), pci={card.bus_id: card})


NAMES = {
    "NIC": "Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]",
    "PORT": "PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0)",
    "GPU": "3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)",
}


def end(place: str, name: str, able: str, now: str) -> str:
    """One function as `lspci -vv | grep` shows it; `able` and `now` are GT/s and lanes: `32 x16`."""
    links = ((label, *value.split()) for label, value in (("LnkCap", able), ("LnkSta", now)))
    port = {"LnkCap": "Port #0, ", "LnkSta": ""}
    lines = (f"\t\t{label}:\t{port[label]}Speed {gts}GT/s, Width {width}\n" for label, gts, width in links)
    return (f"{place} {NAMES[name]}\n" if name else "") + "".join(lines)


def lspci(*ends: tuple[str, str, str, str]) -> Node:
    """A paste of lspci alone."""
    return node_of("".join(end(*each) for each in ends))


def downgraded(*links: tuple[str, str]) -> Node:
    """A paste of lspci that left the ability of GPUs out."""
    return node_of("".join(f"{place}:00.0 {NAMES['GPU']}\n\t\tLnkSta: Speed {state}\n" for place, state in links))


def uplink(*more: tuple[str, str, str, str], device: str = "32 x16") -> Node:
    """A paste of a switch whose uplink runs below both of its ends, and of the NIC below it."""
    ports = (("59:01.0", "16 x16"), ("5a:00.0", "16 x16"), ("5b:10.0", "32 x16"))
    return lspci(*((place, "PORT", "32 x16", now) for place, now in ports), ("5e:00.0", "NIC", "32 x16", device), *more)


def widths(*numbers: int) -> Node:
    """A query of widths alone."""
    rows = "\n".join(f"{number}, {width}" for number, width in enumerate(numbers))
    return node_of(f"index, pcie.link.width.current\n{rows}\n")


def generations(*gens: int, use: int) -> Node:
    """A query of generations and of the use of each GPU."""
    rows = "".join(f"{gpu}, {gen}, {use} %\n" for gpu, gen in enumerate(gens))
    return node_of(f"index, pcie.link.gen.current, utilization.gpu [%]\n{rows}")


BUILDERS: dict[str, Any] = {
    "h100": h100, "busy": busy, "card_alone": card_alone, "nic_alone": nic_alone, "lspci": lspci, "widths": widths,
    "downgraded": downgraded, "uplink": uplink, "idle_h100": lambda: nodes.with_gpus(h100(**IDLE), **IDLE),
    "uplink_half_device": lambda: uplink(device="32 x8"), "unused": lambda: tree(network.ib_h100()),
    "generations": lambda use, *gens: generations(*gens, use=use),
    "one_busy": lambda: nodes.with_gpu(h100(**IDLE), 0, **BUSY),
}  # fmt: skip


# --- hops -----------------------------------------------------------------------------------------------------


def test_every_link_is_seen_once_from_its_lower_end_up_to_the_root_port() -> None:
    made = hops(h100())
    assert len(made) == len({hop.lower.bus_id for hop in made}) == 8 + 8 + 8
    uplink = next(hop for hop in made if hop.is_shared)
    assert uplink.labels == ("GPU0", "mlx5_0")
    assert uplink.upper.port_type.value == "root-port"


def test_a_link_can_do_what_the_lesser_of_its_ends_can() -> None:
    node = h100()
    port = node.pci[bus(node, 0)].parent
    assert port is not None
    hop = hops(with_pci(node, port, max_gen=read(4), max_width=read(8)))[0]
    assert (hop.able_gen, hop.able_width) == (4, 8)


def test_superchip_gpus_virtual_functions_and_storage_have_no_hop() -> None:
    node = h100()
    storage = network.with_nic(node, 0, role=NicRole.STORAGE)
    assert "mlx5_0" not in {label for hop in hops(storage) for label in hop.labels}
    virtual = with_pci(node, str(node.nics[0].bus_id), is_vf=read(True))
    assert "mlx5_0" not in {label for hop in hops(virtual) for label in hop.labels}
    assert not any(hop.gpus for hop in hops(nodes.with_gpus(node, name=read("NVIDIA GB200"))))


# --- a paste of lspci alone -------------------------------------------------------------------------------------


def test_the_command_names_the_function_whose_first_line_grep_took_away() -> None:
    text = "$ sudo lspci -vvs c1:00.0 | grep -E 'Mellanox|Lnk'\n" + end("c1:00.0", "NIC", "16 x16", "8 x4")
    text += "$ sudo lspci -vvs 00:03.2 | grep Lnk\n" + end("", "", "16 x4", "8 x4")
    node = node_of(text)
    assert node.pci["0000:00:03.2"].max_width.value == 4
    assert only(slow(node)).message == "0000:c1:00.0 runs at PCIe Gen3 instead of Gen4"
    assert status(narrow(node)) == "clean"


# --- PCI003: AER errors and replays


def quiet() -> Node:
    """A machine whose functions all count, and counted nothing."""
    return machine("ib_h100", {"pci/all/counters/aer_correctable_total": [0]})


"""GPU4 of the machine."""


def errors(node: Node) -> Any:
    return PcieErrors().judge(node, ())


@pytest.mark.parametrize(("grown", "found"), [(31, False), (32, True)])
@pytest.mark.parametrize("name", ["aer_correctable_total", "replay"])
def test_corrected_errors_are_judged_by_the_specified_bit_error_rate(name: str, grown: int, found: bool) -> None:
    limit = "at most 31 in 60 s (bit error rate 1e-12 on Gen5 x16)"
    wanted: Wanted = {"severity": "WARNING", "expected": limit} if found else "clean"
    node = machine("quiet", {f"pci/GPU4/counters/{name}": [1000, 1000 + grown, 60.0]}, quiet=quiet)
    assert shown(errors(node), wanted) == wanted


def test_functions_below_one_port_do_not_tell_its_errors_twice() -> None:
    node = machine("quiet", {"pci/above GPU4/counters/aer_fatal_total": [0, 1]}, quiet=quiet)
    twin, parent = str(node.nics[0].bus_id), str(node.pci[str(node.gpus[4].bus_id)].parent)
    assert only(errors(with_pci(node, twin, parent=parent))).where.links == (parent,)


# --- PCI004: ACS redirection between peers, and a translating IOMMU


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


MORE: dict[str, Any] = {
    "quiet": quiet, "empty": lambda: Node("empty"), "redirecting": redirecting, "one_root": one_root
}  # fmt: skip


@examples("check", "node", "changes", "wanted")
def test_pcie_of_a_machine(check: str, node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    """Healthy machines with something changed, and pastes."""
    outcome = check_of(Subject.NODE, check)().judge(machine(node, changes, **BUILDERS | MORE), ())
    assert shown(outcome, wanted) == wanted


# --- PCI001 of links that no capture shows: in a topology file, or in places and link lines that a filter left


HEALTHY = (Path(__file__).parents[3] / "fixtures" / "topo" / "dgx-h100-healthy" / "topo.xml").read_text()


def with_lanes(*gpus: int, lanes: str = "4") -> str:
    """The healthy file with the lanes of these GPUs changed."""
    text = HEALTHY
    for gpu in gpus:
        at = text.rindex("<pci", 0, text.index(f'dev="{gpu}" sm='))
        head, rest = text[:at], text[at:]
        text = head + rest.replace('link_width="16"', f'link_width="{lanes}"', 1)
    return text


TEXTS = texts(__file__)
BRIDGED = TEXTS["bridged"]


@examples("gpus", "lanes", "bridge", "wanted")
def test_links_of_a_topology_file(
    tmp_path: Path, gpus: list[int] | None, lanes: str | None, bridge: tuple[str, str] | None, wanted: Wanted
) -> None:
    """A healthy file in which these GPUs have other lanes, or one with a GPU below a bridge of this speed and width."""
    text = BRIDGED.format(speed=bridge[0], lanes=bridge[1]) if bridge else with_lanes(*gpus or (), lanes=lanes or "4")
    (tmp_path / "topo.xml").write_text(text)
    result = check_topology(str(tmp_path / "topo.xml"))
    (outcome,) = [outcome for outcome in result.outcomes if outcome.check == "PCI001"]
    assert shown(outcome, wanted) == wanted
    assert bridge or [finding.id for finding in result.findings] == ["PCI001"] * len(outcome.findings)


def links(*widths: int) -> str:
    return "".join(
        f"{0x21 + number:02x}:00.0\n\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16\n"
        f"\t\tLnkSta:\tSpeed 16GT/s, Width x{width}\n"
        for number, width in enumerate(widths)
    )


@pytest.mark.parametrize(
    ("text", "narrow"),
    [
        (links(16, 8, 16, 8), ["0000:22:00.0", "0000:24:00.0"]),
        (links(16, 16), []),
        (links(8, 8), []),
        (links(8), []),
        ("21:00.0 VGA compatible controller: ATI\n" + links(16, 8), []),
    ],
)
def test_of_functions_without_a_name_those_with_fewer_lanes_than_their_peers_are_found(
    text: str, narrow: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "lspci.txt"
    file.write_text(text)
    findings = [finding for finding in diagnose(str(file)).findings if finding.id == "PCI001"]
    assert [finding.where.links for finding in findings] == [(place,) for place in narrow]
    assert all(finding.severity.name == "WARNING" for finding in findings)
