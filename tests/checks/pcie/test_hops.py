"""PCI001 and PCI002, and the hops that they judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.networks import with_pci
from tests.checks.nodes import only, read, status
from topodiag.checks.pcie.hops import hops
from topodiag.checks.pcie.links import NarrowPcieLink, SlowPcieLink
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.interface import Blob
from topodiag.model.devices import Gpu, NicRole, PciDevice
from topodiag.model.finding import Confidence, Severity
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
    assert device is not None
    assert device.bus_id is not None
    return device.bus_id


@pytest.mark.parametrize("check", [NarrowPcieLink, SlowPcieLink])
@pytest.mark.parametrize("build", [*nodes.HEALTHY, nodes.flat_vm, h100])
def test_healthy_machines_have_no_finding(check: Any, build: Any) -> None:
    assert status(check().judge(build(), ())) != "finding"


@pytest.mark.parametrize("check", [NarrowPcieLink, SlowPcieLink])
def test_a_node_without_devices_is_not_applicable_and_one_without_its_pci_tree_unknown(check: Any) -> None:
    assert status(check().judge(Node("empty"), ())) == "not_applicable"
    assert status(check().judge(nodes.t4_node(), ())) == "unknown"


@pytest.mark.parametrize("check", [NarrowPcieLink, SlowPcieLink])
def test_superchips_alone_have_no_link_to_judge(check: Any) -> None:
    node = replace(nodes.with_gpus(h100(), name=read("NVIDIA GB200")), nics=())
    assert status(check().judge(node, ())) == "not_applicable"


def test_a_card_alone_whose_slot_was_not_seen_may_be_wired_so() -> None:
    """AWS gives T4 and A10G eight lanes; `nvidia-smi -q` of such a guest says x8 of x16."""
    card = PciDevice("0000:00:1e.0", width=read(8), max_width=read(16), gen=read(3), max_gen=read(3))
    node = Node("g4dn", gpus=(Gpu(0, "0000:00:1e.0", name=read("Tesla T4")),), pci={card.bus_id: card})
    assert status(narrow(node)) == "unknown"
    port = PciDevice("0000:00:01.0", max_width=read(16), class_code=read(0x060400))
    slot = {port.bus_id: port, card.bus_id: replace(card, parent=port.bus_id)}
    assert only(narrow(replace(node, pci=slot))).severity is Severity.WARNING


# --- hops -----------------------------------------------------------------------------------------------------


def test_every_link_is_seen_once_from_its_lower_end_up_to_the_root_port() -> None:
    made = hops(h100())
    assert len(made) == len({hop.lower.bus_id for hop in made}) == 8 + 8 + 8
    uplink = next(hop for hop in made if hop.is_shared)
    assert uplink.labels == ("GPU0", "mlx5_0")
    assert uplink.upper is not None
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


# --- PCI001 ---------------------------------------------------------------------------------------------------


def test_a_gpu_at_four_lanes_is_an_error_with_its_bandwidth() -> None:
    node = h100()
    finding = only(narrow(with_pci(node, bus(node, 5), width=read(4, "sys-pci"))))
    assert finding.message == "GPU5 trained at x4 instead of x16"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert finding.expected == "x16 (both ends can do it): Gen5 x16 is 48 GB/s to NCCL"
    assert (finding.cost.gbs_lost, finding.cost.share) == (36.0, 0.75)
    assert finding.where.gpus == ("GPU5",)
    assert finding.evidence[0].source == "sys-pci"


def test_idleness_does_not_excuse_missing_lanes() -> None:
    node = nodes.with_gpus(h100(), **IDLE)
    assert status(narrow(with_pci(node, bus(node, 5), width=read(8)))) == "finding"


def test_a_narrow_uplink_of_a_switch_names_what_it_throttles() -> None:
    node = h100()
    up = next(hop.lower.bus_id for hop in hops(node) if hop.is_shared)
    finding = only(narrow(with_pci(node, up, width=read(8))))
    assert "above GPU0, mlx5_0" in finding.message
    assert (finding.where.gpus, finding.where.nics) == (("GPU0",), ("mlx5_0",))


def test_what_a_nic_loses_is_what_it_could_have_used() -> None:
    node = h100()
    bus_id = str(node.nics[2].bus_id)
    enough = only(narrow(with_pci(with_pci(node, bus_id, width=read(8)), bus(node, 0), width=read(16))))
    assert enough.cost.gbs_lost == 24.0
    slower = network.with_port(node, 2, rate_gbps=read(100.0))
    assert only(narrow(with_pci(slower, bus_id, width=read(8)))).cost.gbs_lost == 0.0


def test_a_narrow_slot_is_no_fault() -> None:
    node = h100()
    port = node.pci[bus(node, 0)].parent
    assert port is not None
    node = with_pci(with_pci(node, bus(node, 0), width=read(8)), port, max_width=read(8))
    assert status(narrow(node)) == "clean"


def test_all_siblings_alike_are_built_so() -> None:
    node = h100()
    for at in range(8):
        node = with_pci(node, bus(node, at), width=read(8))
    outcome = narrow(node)
    assert status(outcome) == "clean"
    assert "x8: built so" in outcome.why


def test_a_device_without_siblings_is_a_warning() -> None:
    node = h100()
    node = replace(node, gpus=node.gpus[:1], nics=())
    finding = only(narrow(with_pci(node, bus(node, 0), width=read(8))))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)


def test_widths_that_are_no_reading_are_unknown() -> None:
    node = h100()
    dark = replace(node, pci={k: replace(v, width=Fact(why="reports width 0")) for k, v in node.pci.items()})
    assert (status(narrow(dark)), narrow(dark).why) == ("unknown", "reports width 0")


def test_without_generations_the_loss_is_a_proportion() -> None:
    node = h100()
    blind = replace(node, pci={k: replace(v, gen=Fact(), max_gen=Fact()) for k, v in node.pci.items()})
    finding = only(narrow(with_pci(blind, bus(node, 5), width=read(4))))
    assert finding.cost.gbs_lost is None
    assert "proportion" in finding.cost.text


# --- PCI002 ---------------------------------------------------------------------------------------------------


def test_a_busy_gpu_at_gen1_is_an_error() -> None:
    node = h100(**BUSY)
    finding = only(slow(with_pci(node, bus(node, 2), gen=read(1, "sys-pci"))))
    assert finding.message == "GPU2 runs at PCIe Gen1 while 97 % busy instead of Gen5"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert finding.cost.share == pytest.approx(1 - 3 / 48, abs=0.01)
    assert {origin.source for origin in finding.evidence} >= {"sys-pci", "nvml"}


def test_an_idle_gpu_at_gen1_saves_power() -> None:
    node = nodes.with_gpus(h100(**IDLE), **IDLE)
    outcome = slow(with_pci(node, bus(node, 2), gen=read(1)))
    assert status(outcome) == "clean"
    assert "power saving: GPU2" in outcome.why


def test_an_idle_gpu_at_full_clocks_is_idle_when_the_driver_says_so() -> None:
    node = h100(utilization=read(0), pstate=read(0), throttle=read(("gpu_idle",)))
    assert status(slow(with_pci(node, bus(node, 2), gen=read(1)))) == "clean"


def test_full_clocks_without_load_are_a_warning() -> None:
    node = h100(utilization=read(0), pstate=read(0), throttle=read(()))
    finding = only(slow(with_pci(node, bus(node, 2), gen=read(3))))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)


@pytest.mark.parametrize("gpu", [{"utilization": read(0)}, {"pstate": read(8)}])
def test_little_use_or_low_clocks_alone_are_idle(gpu: dict[str, Any]) -> None:
    node = h100(**gpu)
    assert status(slow(with_pci(node, bus(node, 2), gen=read(1)))) == "clean"


def test_without_utilization_nothing_is_known() -> None:
    node = tree(network.ib_h100())
    outcome = slow(with_pci(node, bus(node, 2), gen=read(1)))
    assert status(outcome) == "unknown"
    assert "GPU2" in outcome.why


def test_without_link_speeds_nothing_is_known() -> None:
    node = h100(**BUSY)
    dark = replace(node, pci={k: replace(v, gen=Fact(why="Unknown")) for k, v in node.pci.items()})
    assert (status(slow(dark)), slow(dark).why) == ("unknown", "Unknown")


def test_an_older_slot_is_no_fault() -> None:
    node = h100(**BUSY)
    port = node.pci[bus(node, 2)].parent
    assert port is not None
    assert status(slow(with_pci(with_pci(node, bus(node, 2), gen=read(4)), port, max_gen=read(4)))) == "clean"


def test_all_siblings_alike_while_busy_are_built_so() -> None:
    node = h100(**BUSY)
    for at in range(8):
        node = with_pci(node, bus(node, at), gen=read(4))
    assert status(slow(node)) == "clean"


def test_one_busy_gpu_is_not_slower_than_idle_siblings_above_gen1() -> None:
    node = nodes.with_gpu(nodes.with_gpus(h100(**IDLE), **IDLE), 0, **BUSY)
    for at in range(8):
        node = with_pci(node, bus(node, at), gen=read(4))
    assert status(slow(node)) == "clean"


def test_one_busy_gpu_at_gen1_among_resting_ones_is_found() -> None:
    node = nodes.with_gpu(nodes.with_gpus(h100(**IDLE), **IDLE), 0, **BUSY)
    for at in range(8):
        node = with_pci(node, bus(node, at), gen=read(1))
    assert only(slow(node)).where.gpus == ("GPU0",)


def test_an_active_nic_at_a_lower_generation_is_an_error() -> None:
    node = h100()
    finding = only(slow(with_pci(node, str(node.nics[1].bus_id), gen=read(3))))
    assert finding.message == "mlx5_1 runs at PCIe Gen3 instead of Gen5"
    assert finding.cost.gbs_lost == 36.0


def test_a_nic_that_is_down_is_not_judged() -> None:
    node = network.with_port(h100(), 1, **network.DOWN)
    assert status(slow(with_pci(node, str(node.nics[1].bus_id), gen=read(3)))) == "clean"


# --- a paste of lspci alone -------------------------------------------------------------------------------------


def pasted(text: str) -> Node:
    evidence = Evidence("pasted")
    evidence.blobs.append(Blob("lspci.txt", text.encode()))
    return read_node(evidence).node


def end(place: str, name: str, able: str, now: str) -> str:
    """One function as `lspci -vv | grep` shows it; `able` and `now` are GT/s and lanes: `32 x16`."""
    links = ((label, *value.split()) for label, value in (("LnkCap", able), ("LnkSta", now)))
    port = {"LnkCap": "Port #0, ", "LnkSta": ""}
    lines = (f"\t\t{label}:\t{port[label]}Speed {gts}GT/s, Width {width}\n" for label, gts, width in links)
    return (f"{place} {name}\n" if name else "") + "".join(lines)


NIC = "Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]"
PORT = "PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0)"


def test_one_or_two_lanes_of_a_wide_card_need_no_slot_to_be_wrong() -> None:
    finding = only(narrow(pasted(end("08:00.0", NIC, "8 x8", "8 x2"))))
    assert (finding.severity, finding.observed) == (Severity.WARNING, "x2 at 0000:08:00.0, 1.5 GB/s")


@pytest.mark.parametrize("now", ["8 x4", "8 x8"])
def test_half_the_lanes_of_a_card_alone_may_be_its_wiring(now: str) -> None:
    assert status(narrow(pasted(end("08:00.0", NIC, "8 x16", now)))) == "unknown"


def test_a_link_below_both_of_its_ends_is_found_by_lspci_alone() -> None:
    text = end("17:00.0", NIC, "32 x16", "16 x16") + end("16:02.0", PORT, "32 x16", "16 x16")
    finding = only(slow(pasted(text)))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    assert finding.message == "0000:17:00.0 runs at PCIe Gen4 instead of Gen5"


def test_the_command_names_the_function_whose_first_line_grep_took_away() -> None:
    text = "$ sudo lspci -vvs c1:00.0 | grep -E 'Mellanox|Lnk'\n" + end("c1:00.0", NIC, "16 x16", "8 x4")
    text += "$ sudo lspci -vvs 00:03.2 | grep Lnk\n" + end("", "", "16 x4", "8 x4")
    node = pasted(text)
    assert node.pci["0000:00:03.2"].max_width.value == 4
    assert only(slow(node)).message == "0000:c1:00.0 runs at PCIe Gen3 instead of Gen4"
    assert status(narrow(node)) == "clean"


def test_a_newer_card_in_an_older_host_runs_so_by_design() -> None:
    card = end("17:00.0", NIC, "32 x16", "16 x16")
    assert status(slow(pasted(card + end("16:02.0", PORT, "16 x16", "16 x16")))) == "clean"
    assert status(slow(pasted(card))) == "unknown"


def test_an_active_nic_whose_slot_was_not_seen_is_unknown() -> None:
    card = PciDevice("0000:17:00.0", width=read(16), max_width=read(16), gen=read(4), max_gen=read(5))
    nic = nodes.nic(0, 0, bus_id=card.bus_id)
    assert status(slow(Node("n", nics=(nic,), pci={card.bus_id: card}))) == "unknown"


UPLINK = [
    end("59:01.0", PORT, "32 x16", "16 x16"),
    end("5a:00.0", PORT, "32 x16", "16 x16"),
    end("5b:10.0", PORT, "32 x16", "32 x16"),
    end("5e:00.0", NIC, "32 x16", "32 x16"),
]


def test_the_uplink_of_a_switch_below_both_ends_is_found() -> None:
    finding = only(slow(pasted("".join(UPLINK))))
    assert finding.where.links == ("0000:5a:00.0",)
    assert finding.message == "the PCIe switch 0000:5a:00.0 above 0000:5e:00.0 runs at PCIe Gen4 instead of Gen5"


def test_ports_that_need_not_be_above_the_device_are_presumed_nothing_of() -> None:
    two_on_a_bus = end("5b:00.0", PORT, "32 x16", "32 x16")
    other_device = end("5f:00.0", NIC, "32 x16", "32 x16")
    not_alike = end("5e:00.0", NIC, "32 x16", "32 x8")
    for more in (two_on_a_bus, other_device):
        assert status(slow(pasted("".join([*UPLINK, more])))) == "clean"
    assert status(slow(pasted("".join([*UPLINK[:3], not_alike])))) == "clean"


def uplinks(node: Node, *slow_ones: str, gen: int) -> Node:
    for bus_id in slow_ones:
        node = with_pci(node, bus_id, gen=read(gen))
    return node


def test_an_uplink_counts_only_while_what_is_below_it_works() -> None:
    node = h100(**BUSY)
    shared = [hop.lower.bus_id for hop in hops(node) if hop.is_shared]
    assert only(slow(uplinks(node, shared[0], gen=4))).severity is Severity.ERROR
    assert status(slow(uplinks(node, *shared, gen=4))) == "clean"  # all alike: built so
    guest = nodes.with_os(uplinks(node, shared[0], gen=4), virtualization=read("kvm"))
    assert status(slow(guest)) == "clean"
    for at in range(8):
        node = network.with_port(node, at, **network.DOWN)
    assert status(slow(uplinks(nodes.with_gpus(node, **IDLE), shared[0], gen=4))) == "clean"


# -- where only widths are told --


def widths(*numbers: int) -> Node:
    rows = "\n".join(f"{number}, {width}" for number, width in enumerate(numbers))
    return pasted(f"index, pcie.link.width.current\n{rows}\n")


def test_the_one_gpu_that_is_narrower_than_most_is_found_by_widths_alone() -> None:
    finding = only(narrow(widths(16, 16, 8, 16)))
    assert finding.message == "GPU2 trained at x8 instead of x16"
    assert finding.where.links == ()


@pytest.mark.parametrize("shown", [(16, 8), (16, 8, 8), (8, 16, 16, 8)])
def test_boards_with_wide_and_narrow_slots_are_not_told_from_a_fault(shown: tuple[int, ...]) -> None:
    assert "nothing tells whether it is built so" in narrow(widths(*shown)).why


def test_all_alike_by_widths_alone_are_built_so() -> None:
    assert status(narrow(widths(8, 8, 8))) == "clean"


def test_lspcis_own_word_tells_lost_lanes_where_the_ability_was_left_out() -> None:
    gpu = "{}:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n\t\tLnkSta: Speed {}\n"
    whole, lost = "32GT/s, Width x16", "16GT/s (downgraded), Width x8 (downgraded)"
    finding = only(narrow(pasted(gpu.format("17", whole) + gpu.format("3b", lost))))
    assert finding.message == "GPU1 trained at x8 instead of x16"
    assert "neither its slot's width" in narrow(pasted(gpu.format("3b", lost))).why


def test_a_busy_gpu_that_is_slower_than_most_is_found_by_generations_alone() -> None:
    rows = "".join(f"{gpu}, {gen}, 9{gpu} %\n" for gpu, gen in enumerate((5, 5, 3, 5)))
    finding = only(slow(pasted(f"index, pcie.link.gen.current, utilization.gpu [%]\n{rows}")))
    assert finding.message == "GPU2 runs at PCIe Gen3 while 92 % busy instead of Gen5"


@pytest.mark.parametrize(("gens", "use"), [((5, 3), 97), ((5, 5, 1, 5), 0), ((3, 3, 3, 3), 97)])
def test_generations_alone_accuse_no_idle_gpu_and_no_even_board(gens: tuple[int, ...], use: int) -> None:
    rows = "".join(f"{gpu}, {gen}, {use} %\n" for gpu, gen in enumerate(gens))
    assert not slow(pasted(f"index, pcie.link.gen.current, utilization.gpu [%]\n{rows}")).findings
