"""TOP001 to TOP006: topology files, what NCCL printed of the machine, PCIe trees of guests."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs, nodes
from tests.checks import topo_trees as made
from tests.checks.bent import Built, machine
from tests.checks.nodes import read
from tests.checks.wanted import Wanted, expect, shown
from tests.nccl.corpus import is_bare
from tests.scanned import node_at
from tests.tables import examples
from topodiag.app.topo import check_topology
from topodiag.checks.shared.topo_evidence import devices_of
from topodiag.checks.topo.another_machine import FileOfAnotherMachine
from topodiag.checks.topo.file import DeviceTwiceInFile, FileOfARack, FileRefused, GpuShortInFile
from topodiag.checks.topo.job import DeviceTwice, GpuShortOfNvlinks, GuessedTopology, TopologyFileRefused
from topodiag.checks.topo.virtual_pci import VirtualPciTree
from topodiag.model.devices import Nic, NicRole
from topodiag.model.finding import Severity, Status
from topodiag.model.nccl_tree import Element, Refusal
from topodiag.model.nccl_versions import minor_of, spell_range
from topodiag.model.nccl_view import NcclSystem, SystemDevice, SystemLink
from topodiag.model.node import Node, Process, Setting
from topodiag.model.provenance import Origin

BOARD = made.board()


def status(outcome: object) -> Status:
    found = outcome.status  # type: ignore[attr-defined]
    assert isinstance(found, Status)
    return found


CHECKS = {check.__name__: check for check in (FileRefused, FileOfAnotherMachine, FileOfARack)}
BUILDERS: dict[str, Callable[..., Any]] = {
    **{name: getattr(made, name) for name in ("alone", "against", "machine", "told_to_read", "board", "system", "cpu")},
    **{name: getattr(made, name) for name in ("gpu", "nic", "switch")},
    "Refusal": Refusal, "Node": Node,
    "captured": lambda node, tree: replace(node, nccl_file=made.alone(tree).nccl_file),
}  # fmt: skip


def built(told: Any) -> Any:
    """What a row tells: a builder by its name with its arguments, and at the end a table of those with a name."""
    if not isinstance(told, list):
        return told
    if not told or not isinstance(told[0], str):
        return tuple(map(built, told))
    name, *arguments = told
    named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
    return BUILDERS[name](*map(built, arguments), **{key: built(value) for key, value in named.items()})


@examples("checks", "node", "wanted")
def test_what_is_judged_of_a_file(checks: list[str], node: list[Any], wanted: Wanted) -> None:
    for check in checks:
        assert shown(CHECKS[check]().judge(built(node), ()), wanted) == wanted


def test_all_versions_load_a_sound_file() -> None:
    assert FileRefused().judge(made.alone(BOARD), ()).why == f"NCCL {spell_range()} load it"


def test_long_words_are_told_without_their_middle() -> None:
    words = f"Error : value {'x' * 300} too long (max 255)"
    refusal = Refusal("too-long", words, 2, 1)
    outcome = FileRefused().judge(made.alone(BOARD, refusals=(refusal,)), ())
    finding = expect(outcome, message=["*…*", "*too long (max 255)"])
    assert len(finding.message) < 180


# --- TOP002 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [NicRole.STORAGE, NicRole.MANAGEMENT])
def test_a_file_without_storage_nics_is_no_other_machines(role: NicRole) -> None:
    extra = Nic("mlx5_9", rdma_name="mlx5_9", role=role)
    other = made.machine(nics=(*made.machine().nics, extra))
    assert status(FileOfAnotherMachine().judge(made.against(made.alone(BOARD), other), ())) is Status.CLEAN


def test_a_merged_nic_counts_as_its_parts() -> None:
    tree = made.system(made.cpu(made.switch(0, made.gpu(0), made.nic(0, name="mlx5_0+mlx5_1"))))
    assert devices_of(tree)[1] == ("mlx5_0", "mlx5_1")


def test_a_display_function_without_gpu_is_a_place() -> None:
    bare = Element("pci", (("busid", made.bus(0)), ("class", "0x030200")))
    other = Element("pci", (("busid", made.bus(1)), ("class", "0x030000"), ("vendor", "0x1a03")))
    assert devices_of(made.system(made.cpu(bare, other)))[0] == {made.bus(0): ""}


def test_a_file_that_slows_the_node_down_is_to_be_unset_where_it_is_set() -> None:
    def dark(element: Element) -> Element:
        kept = [(key, "32.0 GT/s" if key == "link_speed" else value) for key, value in element.attributes]
        return replace(element, attributes=tuple(kept), children=tuple(dark(child) for child in element.children))

    whole = replace(made.machine(), nccl_file=made.alone(BOARD).nccl_file)
    node = replace(made.alone(dark(BOARD)), settings=made.told_to_read("/etc/topo.xml").settings)
    finding = expect(FileOfAnotherMachine().judge(made.against(node, whole), ()), message="*slower than no file*")
    assert finding.settings == (("NCCL_TOPO_FILE", None),)
    (finding,) = FileOfAnotherMachine().judge(made.against(made.alone(dark(BOARD)), whole), ()).findings
    assert finding.settings == ()


# --- TOP003 --------------------------------------------------------------------------------------------------


def flat(numa: str, speed: str, width: str, *, below_switch: bool = False) -> Node:
    def dark(pci: Element) -> Element:
        kept = [(key, {"link_speed": speed, "link_width": width}.get(key, value)) for key, value in pci.attributes]
        return replace(pci, attributes=tuple(kept))

    devices = [dark(made.gpu(at)) for at in range(4)] + [dark(made.nic(at)) for at in range(4)]
    text = [made.switch(0, *devices)] if below_switch else devices
    node = made.alone(made.system(made.cpu(*text, numa=numa)))
    return replace(node, gpus=made.machine().gpus, nics=made.machine().nics)


@examples("numa", "speed", "width", "below", "wanted")
def test_a_file_that_makes_nccl_guess_is_told(numa: str, speed: str, width: str, below: bool, wanted: Status) -> None:
    assert status(VirtualPciTree().judge(flat(numa, speed, width, below_switch=below), ())) is wanted


# --- TOP006 --------------------------------------------------------------------------------------------------


# --- words ---------------------------------------------------------------------------------------------------


@given(st.text(alphabet="<>/=\"' \n\tabcdepuginvx10!?-", max_size=200))
def test_no_file_makes_a_check_fail(tail: str) -> None:
    node = made.read(f'<system version="1"><cpu numaid="0">{tail}')
    for check in (FileRefused(), FileOfAnotherMachine(), FileOfARack()):
        assert status(check.judge(node, ())) in set(Status)


# --- The corpus' topology files: TOP001 refuses what NCCL refused, in its words, and nothing else raises a false
# alarm


TOPO = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "topo"
NAMES = sorted(path.stem for path in TOPO.glob("*.xml"))

NO_GPU = {name for name in NAMES if "<gpu" not in (TOPO / f"{name}.xml").read_text()}
"""NCCL takes these and fills them from the machine; the emulated one had nothing else, so that it ended for want of
GPUs, without a word on the file."""
SICK = ("nonvl", "12nvl", "gen014", "gen021", "gen024", "gen025", "gen035", "gen040")
"""Files in which some GPU has fewer links to the NVSwitches than others."""
TWICE = ("x_duplicate_busid", "dgx1v")
"""dgx1v's NIC has the bus id of a GPU."""


JOBS = TOPO.parent / "jobs"
FILES = sorted({path.name: path for path in JOBS.glob("*/*.xml") if path.name != "graph.xml"}.items())
FEWER_NICS = ("dgx_h100_7nics.xml",)


def node(name: str) -> Node:
    return node_at(str(TOPO / f"{name}.xml"))


def truth(name: str) -> Any:
    return json.loads(gzip.decompress((TOPO / f"{name}.truth.json.gz").read_bytes()))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NO_GPU])
def test_what_nccl_refused_is_refused_in_its_words_and_what_it_took_is_not(name: str) -> None:
    file = node(name).nccl_file
    assert file is not None
    for version, by_nodes in truth(name).items():
        wanted = by_nodes["1"]
        asked = replace(node(name), nccl_file=replace(file, asked=(minor_of(version),)))
        outcome = FileRefused().judge(asked, ())
        if is_bare(wanted):
            assert outcome.status is Status.CLEAN, (version, outcome)
            continue
        assert (outcome.status is Status.FINDING) == (not wanted["accepted"]), (version, outcome)
        assert outcome.status is not Status.UNKNOWN, version
        if outcome.findings and wanted["warn"]:
            text = outcome.findings[0].observed.partition(": ")[2].partition(" … ")[0]
            assert any(text[:60] in words or words in text for words in wanted["warn"]), (text, wanted["warn"])


@pytest.mark.parametrize("name", sorted(NO_GPU - {"x_empty_file"}))
def test_a_file_without_gpus_is_neither_called_valid_nor_refused(name: str) -> None:
    assert FileRefused().judge(node(name), ()).status is Status.UNKNOWN


@pytest.mark.parametrize("name", [name for name in NAMES if name != "x_empty_file"])
def test_only_files_made_sick_are_called_sick(name: str) -> None:
    short = GpuShortInFile().judge(node(name), ()).status
    assert (short in {Status.FINDING, Status.UNKNOWN}) == any(part in name for part in SICK)
    assert (DeviceTwiceInFile().judge(node(name), ()).status is Status.FINDING) == (name in TWICE)
    assert FileOfARack().judge(node(name), ()).status is not Status.FINDING


@pytest.mark.parametrize(("name", "path"), FILES, ids=[name for name, _ in FILES])
def test_files_of_jobs_raise_no_error_but_what_was_done_to_them(name: str, path: Path) -> None:
    texts = {f.id for f in check_topology(str(path)).findings if f.severity is Severity.ERROR}
    sick = {"TOP004", "NVL001"} if "12nvl" in name else {"NIC005"} if name in FEWER_NICS else set()
    assert texts == sick


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


def flat_system(host: int, system: NcclSystem) -> NcclSystem:
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


PRINTED = {check.__name__: check for check in (TopologyFileRefused, GuessedTopology, GpuShortOfNvlinks, DeviceTwice)}


@examples("check", "given", "wanted")
def test_what_nccl_printed_of_the_machine(check: str, given: jobs.Given, wanted: Wanted) -> None:
    hooks = {
        "flat": flat_system,
        "short": short,
        "mesh": joined_mesh,
        "joined": joined,
        "twin": twin,
        "doubled": doubled,
    }
    assert shown(PRINTED[check]().judge(jobs.of_row(given, **hooks)), wanted) == wanted


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


GUESTS: dict[str, Any] = {"unseen": unseen, "with_file": with_file, "with_file_of_a_process": with_file_of_a_process}


@examples("node", "changes", "wanted")
def test_guests_without_a_pci_tree(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(judge(machine(node, changes, **GUESTS)), wanted) == wanted
