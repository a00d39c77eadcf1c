"""TOP003 and TOP004, TOP005: trees of files, jobs and guests, by their devices."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.checks import jobs, nodes
from tests.checks import topo_trees as made
from tests.checks.bent import Built, machine
from tests.checks.nodes import read
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.topo.devices import DeviceTwiceInFile, GpuShortInFile
from topodiag.checks.topo.job_file import TopologyFileRefused
from topodiag.checks.topo.job_tree import DeviceTwice, GpuShortOfNvlinks, GuessedTopology
from topodiag.checks.topo.virtual_pci import VirtualPciTree
from topodiag.model.finding import Severity
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_view import NcclSystem, SystemDevice, SystemLink
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.model.system import Process, Setting

# --- TOP004 --------------------------------------------------------------------------------------------------


def mesh() -> Element:
    """GPUs joined in pairs, with other counts of links."""
    return made.system(made.cpu(*(made.gpu(at, links=2 - at % 2, target=made.bus(at ^ 1)) for at in range(4))))


def refused() -> Element:
    """A file that NCCL refuses, in which a GPU is short of links."""
    tree = made.board((18, 18, 18, 12))
    cpu = tree.children[0]
    return replace(tree, children=(replace(cpu, attributes=tuple(it for it in cpu.attributes if it[0] != "numaid")),))


def gpu_twice() -> Element:
    return made.system(made.cpu(made.gpu(0), made.gpu(1, at=made.bus(0))))


def nics(*nics: dict[str, str]) -> Element:
    return made.system(made.cpu(*(made.nic(number, **nic) for number, nic in enumerate(nics))))


def rack() -> Element:
    """Two trays of a rack."""
    return made.system(*(made.cpu(made.gpu(0), made.nic(0), host=host) for host in ("0x1", "0x2")))


TREES: dict[str, Callable[..., Element]] = {
    "board": lambda *counts: made.board(counts) if counts else made.board(), "mesh": mesh, "refused": refused,
    "gpu_twice": gpu_twice, "nics": nics, "rack": rack,
}  # fmt: skip


@examples("tree", "wanted")
def test_gpus_short_of_links(tree: list[Any], wanted: Wanted) -> None:
    assert shown(GpuShortInFile().judge(made.alone(TREES[tree[0]](*tree[1:])), ()), wanted) == wanted


@examples("tree", "wanted")
def test_devices_that_are_there_twice(tree: list[Any], wanted: Wanted) -> None:
    assert shown(DeviceTwiceInFile().judge(made.alone(TREES[tree[0]](*tree[1:])), ()), wanted) == wanted


def test_a_gpu_without_nvlinks_collapses_the_search_and_says_the_loss_and_the_repair() -> None:
    (finding,) = GpuShortInFile().judge(made.alone(made.board((18, 18, 18, 18, 18, 18, 18, 0))), ()).findings
    assert finding.severity is Severity.ERROR
    assert finding.where.gpus == ("GPU7",)
    assert "collapses, without a warning" in finding.message
    assert finding.cost.share > 0.5
    assert "--repair" in finding.fix[0]
    assert [origin.line for origin in finding.evidence] == [17]


def test_some_links_less_are_told_without_a_collapse() -> None:
    (finding,) = GpuShortInFile().judge(made.alone(made.board((18, 18, 18, 12))), ()).findings
    assert "12 NVLinks to the NVSwitches where the peers have 18" in finding.message
    assert "collapses" not in finding.message
    assert finding.cost.gbs_lost > 0


def test_the_version_asked_for_prices_it() -> None:
    expect(GpuShortInFile().judge(made.alone(made.board((18, 18, 18, 12)), asked=(22,)), ()), observed="*NCCL 2.22*")


# --- TOP001, TOP003, TOP004 and TOP005 by logs


def flat(host: int, system: NcclSystem) -> NcclSystem:
    """A guest without a PCI tree: all devices below one CPU of an unknown NUMA node."""
    cpu = SystemDevice("CPU", "0-ffffffffffffffff", numbers=(1, 1, 3))
    devices = [cpu, *(replace(gpu, parent=cpu.name) for gpu in system.of_kind("GPU"))]
    return replace(system, devices={device.name: device for device in devices})


def joined_mesh(host: int, system: NcclSystem) -> NcclSystem:
    """GPUs joined without NVSwitches, one of them with less."""
    devices = {name: device for name, device in system.devices.items() if device.kind != "NVS"}
    return replace(short("GPU/0-40000", 100.0)(host, system), devices=devices)


def joined(host: int, system: NcclSystem) -> NcclSystem:
    """Equal bus ids on another host of one NVLink domain."""
    other = [replace(gpu, id=gpu.id.replace("0-", "1-", 1), rank=gpu.rank + 8) for gpu in system.of_kind("GPU")]
    return replace(system, devices={**system.devices, **{gpu.name: gpu for gpu in other}})


def twin(host: int, system: NcclSystem) -> NcclSystem:
    """A port of a NIC that is there twice."""
    net = system.devices["NET/0-1"]
    return replace(system, devices={**system.devices, "NET/0-9": replace(net, id="0-9")})


def doubled(host: int, system: NcclSystem) -> NcclSystem:
    """The second half of the GPUs under a second system, with the bus ids of the first half."""
    gpus = system.of_kind("GPU")
    twins = [replace(b, id=a.id.replace("0-", "1-", 1)) for a, b in zip(gpus[:4], gpus[4:], strict=True)]
    devices = [*(d for d in system.devices.values() if d not in gpus[4:]), *twins]
    return replace(system, devices={device.name: device for device in devices})


CHECKS = {check.__name__: check for check in (TopologyFileRefused, GuessedTopology, GpuShortOfNvlinks, DeviceTwice)}


@examples("check", "given", "wanted")
def test_what_nccl_printed_of_the_machine(check: str, given: jobs.Given, wanted: Wanted) -> None:
    hooks = {"flat": flat, "short": short, "mesh": joined_mesh, "joined": joined, "twin": twin, "doubled": doubled}
    assert shown(CHECKS[check]().judge(jobs.of_row(given, **hooks)), wanted) == wanted


def short(name: str, gbs: float) -> Callable[[int, NcclSystem], NcclSystem]:
    def hook(host: int, system: NcclSystem) -> NcclSystem:
        kept = [link for link in system.links if link.kind != "NVL" or name not in (link.a, link.b)]
        added = [SystemLink(name, "NVS/0-0", "NVL", gbs)] if gbs else []
        return replace(system, links=(*kept, *added))

    return hook


# --- TOP003: PCI trees that a hypervisor made up


def judge(node: Node) -> Any:
    return VirtualPciTree().judge(node, ())


def unseen() -> Node:
    """A guest of which no tree, no matrix and no path was seen."""
    whole = nodes.hgx_h100()
    return replace(nodes.flat_vm(), pci={}, paths={}, smi_matrix={}, gpus=whole.gpus, nics=whole.nics)


def with_file() -> Node:
    setting = Setting("NCCL_TOPO_FILE", "/opt/topo.xml", "/etc/nccl.conf", Origin("nccl.conf", 1))
    return replace(nodes.flat_vm(), settings=(setting,))


def with_file_of_a_process() -> Node:
    process = Process(7, (0,), nccl_env=read({"NCCL_TOPO_FILE": "/x.xml"}))
    return replace(nodes.flat_vm(), processes=(process,))


BUILDERS: dict[str, Any] = {"unseen": unseen, "with_file": with_file, "with_file_of_a_process": with_file_of_a_process}


@examples("node", "changes", "wanted")
def test_guests_without_a_pci_tree(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(judge(machine(node, changes, **BUILDERS)), wanted) == wanted
