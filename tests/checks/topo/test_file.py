"""TOP001, TOP002, TOP003 and TOP006 on a topology file: what is told, and every reason to stay silent or in doubt."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import topo_trees as made
from tests.checks.wanted import Wanted, expect, shown
from tests.nccl.corpus import is_bare
from tests.scanned import node_at
from tests.tables import examples
from topodiag.app.topo import check_topology
from topodiag.checks.shared.topo_evidence import devices_of
from topodiag.checks.topo.another_machine import FileOfAnotherMachine
from topodiag.checks.topo.devices import DeviceTwiceInFile, GpuShortInFile
from topodiag.checks.topo.file import FileOfARack, FileRefused
from topodiag.checks.topo.virtual_pci import VirtualPciTree
from topodiag.model.devices import Nic, NicRole
from topodiag.model.finding import Severity, Status
from topodiag.model.nccl_tree import Element, Refusal
from topodiag.model.nccl_versions import minor_of, spell_range, spell_versions
from topodiag.model.node import Node
from topodiag.words.units import few

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


@given(st.sets(st.integers(18, 30), min_size=1))
def test_versions_are_spelt_as_runs_that_hold_all_of_them(minors: set[int]) -> None:
    numbers = set()
    for run in spell_versions(minors).split(" and "):
        low, _, high = run.partition(" to ")
        numbers |= set(range(int(low[2:]), int((high or low)[2:]) + 1))
    assert numbers == minors


def test_of_many_words_some_are_told_and_the_rest_counted() -> None:
    assert few(["a", "b"], 2, "; ") == "a; b"
    assert few(["a", "b", "c"], 2, "; ") == "a; b; and 1 more"


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
