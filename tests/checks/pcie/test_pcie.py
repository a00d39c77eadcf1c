"""PCI001, PCI002 and PCI003: lanes and generations of links, the hops that they judge, AER errors and replays."""

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.networks import with_pci
from tests.checks.nodes import only, read, status
from tests.checks.wanted import Wanted, shown
from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.checks.pcie.errors import PcieErrors
from topodiag.checks.pcie.hops import hops
from topodiag.checks.pcie.links import NarrowPcieLink, SlowPcieLink
from topodiag.model.devices import Gpu, NicRole, PciDevice
from topodiag.model.node import Node

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


@examples("node", "changes", "wanted")
def test_links_with_fewer_lanes(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(narrow(machine(node, changes, **BUILDERS)), wanted) == wanted


@examples("node", "changes", "wanted")
def test_links_of_a_lower_generation(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(slow(machine(node, changes, **BUILDERS)), wanted) == wanted


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


@examples("node", "changes", "wanted")
def test_errors_of_pcie_functions(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(errors(machine(node, changes, quiet=quiet, empty=lambda: Node("empty"))), wanted) == wanted


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
