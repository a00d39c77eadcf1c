"""TOP001, TOP002, TOP003 and TOP006 on a topology file: what is told, and every reason to stay silent or in doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import topo_trees as made
from tests.tables import examples
from topodiag.checks.shared.topo_evidence import devices_of
from topodiag.checks.topo.another_machine import FileOfAnotherMachine
from topodiag.checks.topo.file import FileOfARack, FileRefused
from topodiag.checks.topo.virtual_pci import VirtualPciTree
from topodiag.model.devices import Nic, NicRole
from topodiag.model.finding import Severity, Status
from topodiag.model.nccl_tree import Element, Refusal
from topodiag.model.nccl_versions import NEWEST, OLDEST, spell_range, spell_versions
from topodiag.model.node import Node
from topodiag.words.fold import few

BOARD = made.board()


def status(outcome: object) -> Status:
    found = outcome.status  # type: ignore[attr-defined]
    assert isinstance(found, Status)
    return found


# --- without a file ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [FileRefused(), FileOfAnotherMachine(), FileOfARack()])
def test_without_a_file_there_is_nothing_to_judge(check: FileRefused) -> None:
    assert status(check.judge(made.machine(), ())) is Status.NOT_APPLICABLE


@pytest.mark.parametrize("check", [FileRefused(), FileOfAnotherMachine(), FileOfARack()])
def test_a_file_that_nccl_is_told_to_read_and_nobody_captured_is_unknown_by_name(check: FileRefused) -> None:
    outcome = check.judge(made.told_to_read("/etc/nccl/topo.xml"), ())
    assert status(outcome) is Status.UNKNOWN
    assert "/etc/nccl/topo.xml" in outcome.why


def test_an_empty_setting_names_no_file() -> None:
    assert status(FileRefused().judge(made.told_to_read("  "), ())) is Status.NOT_APPLICABLE


# --- TOP001 --------------------------------------------------------------------------------------------------


def test_a_sound_file_is_clean_for_all_versions() -> None:
    outcome = FileRefused().judge(made.alone(BOARD), ())
    assert (status(outcome), outcome.why) == (Status.CLEAN, f"NCCL {spell_range()} load it")


def test_what_the_reader_refuses_is_told_with_line_words_and_versions() -> None:
    refusal = Refusal("tab", "XML Parse error : expecting '<', got '\\t'", 2, 1, "\t<cpu", OLDEST, NEWEST)
    (finding,) = FileRefused().judge(made.alone(BOARD, refusals=(refusal,)), ()).findings
    assert finding.severity is Severity.ERROR
    assert finding.message == f"NCCL {spell_range()} refuse topo.xml: XML Parse error : expecting '<', got '\\t'"
    assert finding.observed.startswith("line 2: ")
    assert finding.evidence[0].line == 2


def test_versions_that_do_not_matter_to_the_reference_are_a_warning() -> None:
    refusal = Refusal("quote", "no", 2, 1, "", 18, 26)
    (finding,) = FileRefused().judge(made.alone(BOARD, refusals=(refusal,)), ()).findings
    assert finding.severity is Severity.WARNING


def test_only_the_version_asked_for_counts() -> None:
    refusal = Refusal("quote", "no", 2, 1, "", 18, 26)
    assert status(FileRefused().judge(made.alone(BOARD, refusals=(refusal,), asked=(28,)), ())) is Status.CLEAN
    (finding,) = FileRefused().judge(made.alone(BOARD, refusals=(refusal,), asked=(26,)), ()).findings
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith("NCCL 2.26 refuses ")


def test_versions_that_complain_in_other_words_are_told_apart() -> None:
    refusals = (Refusal("end", "one", 3, 1, "", 18, 20), Refusal("end", "other", 4, 1, "", 21, NEWEST))
    (finding,) = FileRefused().judge(made.alone(BOARD, refusals=refusals), ()).findings
    assert finding.observed == f"line 3: one (2.18 to 2.20); line 4: other ({spell_range(21)})"


def test_a_link_without_its_reverse_is_refused_by_the_graph() -> None:
    one, other = made.gpu(0, target=made.bus(1)), made.gpu(1, links=0)
    (finding,) = FileRefused().judge(made.alone(made.system(made.cpu(one, other))), ()).findings
    assert "Failed to find reverse path" in finding.observed


def test_a_file_without_gpus_is_unknown_until_the_machine_is() -> None:
    bare = made.system(made.cpu())
    outcome = FileRefused().judge(made.alone(bare), ())
    assert status(outcome) is Status.UNKNOWN
    assert "names no GPU" in outcome.why
    whole = made.against(made.alone(bare), replace(made.machine(), nccl_file=made.alone(BOARD).nccl_file))
    assert status(FileRefused().judge(whole, ())) is Status.CLEAN


def test_long_words_are_told_without_their_middle() -> None:
    words = f"Error : value {'x' * 300} too long (max 255)"
    refusal = Refusal("too-long", words, 2, 1)
    (finding,) = FileRefused().judge(made.alone(BOARD, refusals=(refusal,)), ()).findings
    assert "…" in finding.message
    assert finding.message.endswith("too long (max 255)")
    assert len(finding.message) < 180


# --- TOP002 --------------------------------------------------------------------------------------------------


def test_a_file_by_itself_is_of_no_other_machine() -> None:
    assert status(FileOfAnotherMachine().judge(made.alone(BOARD), ())) is Status.NOT_APPLICABLE


def test_the_file_of_this_machine_is_clean() -> None:
    assert status(FileOfAnotherMachine().judge(made.against(made.alone(BOARD), made.machine()), ())) is Status.CLEAN


def test_a_file_in_a_capture_is_held_against_the_captured_node() -> None:
    node = replace(made.machine(), nccl_file=made.alone(BOARD).nccl_file)
    assert status(FileOfAnotherMachine().judge(node, ())) is Status.CLEAN
    other = replace(made.machine(), nccl_file=made.alone(made.board((18, 18))).nccl_file)
    (finding,) = FileOfAnotherMachine().judge(other, ()).findings
    assert "is not in the file" in finding.observed


def test_a_machine_without_devices_says_nothing() -> None:
    outcome = FileOfAnotherMachine().judge(made.against(made.alone(BOARD), Node("empty")), ())
    assert status(outcome) is Status.UNKNOWN


def test_stale_bus_ids_are_errors_and_told_both_ways() -> None:
    tree = made.system(made.cpu(*(made.gpu(at, at="0000:e0:00.0" if at == 2 else "") for at in range(4))))
    (finding,) = FileOfAnotherMachine().judge(made.against(made.alone(tree), made.machine(nics=())), ()).findings
    assert finding.severity is Severity.ERROR
    assert "GPU 0000:e0:00.0 is not on gpu-07" in finding.observed
    assert f"GPU {made.bus(2)} of gpu-07 is not in the file" in finding.observed


def test_upper_case_and_long_domains_are_the_same_bus_id() -> None:
    tree = made.system(made.cpu(*(made.gpu(at, at=f"00000000:{0x10 + 16 * at:02X}:00.0") for at in range(4))))
    node = made.against(made.alone(tree), made.machine(nics=()))
    assert status(FileOfAnotherMachine().judge(node, ())) is Status.CLEAN


def test_another_machine_altogether_is_told_in_one_phrase() -> None:
    other = made.machine(gpus=2)
    tree = made.system(made.cpu(made.gpu(0, at="0000:e0:00.0"), made.gpu(1, at="0000:e8:00.0")))
    (finding,) = FileOfAnotherMachine().judge(made.against(made.alone(tree), other), ()).findings
    assert finding.message == "topo.xml is not of gpu-07: none of its GPUs is on gpu-07"


def test_a_nic_that_the_file_lacks_is_a_warning() -> None:
    tree = made.system(made.cpu(*(made.switch(at, made.gpu(at), *([made.nic(at)] if at else [])) for at in range(4))))
    (finding,) = FileOfAnotherMachine().judge(made.against(made.alone(tree), made.machine()), ()).findings
    assert finding.severity is Severity.WARNING
    assert finding.observed == "NIC mlx5_0 of gpu-07 is not in the file"


@pytest.mark.parametrize("role", [NicRole.STORAGE, NicRole.MANAGEMENT])
def test_a_file_without_storage_nics_is_no_other_machines(role: NicRole) -> None:
    extra = Nic("mlx5_9", rdma_name="mlx5_9", role=role)
    other = made.machine(nics=(*made.machine().nics, extra))
    assert status(FileOfAnotherMachine().judge(made.against(made.alone(BOARD), other), ())) is Status.CLEAN


def test_a_log_that_names_no_nic_judges_gpus_alone() -> None:
    assert status(
        FileOfAnotherMachine().judge(made.against(made.alone(BOARD), made.machine(nics=())), ())
    ) is Status.CLEAN  # fmt: skip


def test_a_merged_nic_counts_as_its_parts() -> None:
    tree = made.system(made.cpu(made.switch(0, made.gpu(0), made.nic(0, name="mlx5_0+mlx5_1"))))
    assert devices_of(tree).nics == ("mlx5_0", "mlx5_1")


def test_a_display_function_without_gpu_is_a_place() -> None:
    bare = Element("pci", (("busid", made.bus(0)), ("class", "0x030200")))
    other = Element("pci", (("busid", made.bus(1)), ("class", "0x030000"), ("vendor", "0x1a03")))
    assert devices_of(made.system(made.cpu(bare, other))).gpus == {made.bus(0): ""}


def test_a_file_that_slows_the_node_down_is_to_be_unset_where_it_is_set() -> None:
    def dark(element: Element) -> Element:
        kept = [(key, "32.0 GT/s" if key == "link_speed" else value) for key, value in element.attributes]
        return replace(element, attributes=tuple(kept), children=tuple(dark(child) for child in element.children))

    whole = replace(made.machine(), nccl_file=made.alone(BOARD).nccl_file)
    node = replace(made.alone(dark(BOARD)), settings=made.told_to_read("/etc/topo.xml").settings)
    (finding,) = FileOfAnotherMachine().judge(made.against(node, whole), ()).findings
    assert "slower than no file" in finding.message
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


def test_processors_of_two_hosts_are_a_rack() -> None:
    tree = made.system(made.cpu(made.gpu(0), host="0x1"), made.cpu(made.gpu(0), host="0x2"))
    (finding,) = FileOfARack().judge(made.alone(tree), ()).findings
    assert finding.severity is Severity.WARNING
    assert finding.observed == "2 host hashes: 0x1, 0x2"
    assert "--host 0x1" in finding.fix[0]


@pytest.mark.parametrize("hosts", [("", ""), ("0x1", "0x1")])
def test_one_host_or_none_named_is_no_rack(hosts: tuple[str, str]) -> None:
    tree = made.system(made.cpu(made.gpu(0), host=hosts[0]), made.cpu(made.gpu(1), numa="1", host=hosts[1]))
    assert status(FileOfARack().judge(made.alone(tree), ())) is Status.CLEAN


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
