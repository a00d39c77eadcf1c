"""TOP004 and TOP005 on a topology file: GPUs short of NVLinks, devices that stand there twice, and what is neither."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks import topo_trees as made
from topodiag.checks.topo.devices import DeviceTwiceInFile, GpuShortInFile
from topodiag.model.finding import Severity, Status

# --- TOP004 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [GpuShortInFile(), DeviceTwiceInFile()])
def test_without_a_file_there_is_nothing_to_judge(check: GpuShortInFile) -> None:
    assert check.judge(made.machine(), ()).status is Status.NOT_APPLICABLE
    assert check.judge(made.told_to_read("/etc/topo.xml"), ()).status is Status.UNKNOWN


def test_gpus_alike_are_clean() -> None:
    outcome = GpuShortInFile().judge(made.alone(made.board()), ())
    assert (outcome.status, outcome.why) == (Status.CLEAN, "4 GPUs with 18 NVLinks each")


def test_a_gpu_without_nvlinks_collapses_the_search_and_says_the_loss_and_the_repair() -> None:
    (finding,) = GpuShortInFile().judge(made.alone(made.board((18, 18, 18, 18, 18, 18, 18, 0))), ()).findings
    assert finding.severity is Severity.ERROR
    assert finding.where.gpus == ("GPU7",)
    assert "collapses, without a warning" in finding.message
    assert finding.cost.share is not None
    assert finding.cost.share > 0.5
    assert "--repair" in finding.fix[0]
    assert [origin.line for origin in finding.evidence] == [17]


def test_some_links_less_are_told_without_a_collapse() -> None:
    (finding,) = GpuShortInFile().judge(made.alone(made.board((18, 18, 18, 12))), ()).findings
    assert "12 NVLinks to the NVSwitches where the peers have 18" in finding.message
    assert "collapses" not in finding.message
    assert finding.cost.gbs_lost is not None
    assert finding.cost.gbs_lost > 0


def test_several_short_gpus_are_one_finding() -> None:
    (finding,) = GpuShortInFile().judge(made.alone(made.board((18, 18, 18, 12, 0))), ()).findings
    assert finding.where.gpus == ("GPU3", "GPU4")
    assert "have 0/12 NVLinks" in finding.message


def test_the_version_asked_for_prices_it() -> None:
    (finding,) = GpuShortInFile().judge(made.alone(made.board((18, 18, 18, 12)), asked=(22,)), ()).findings
    assert "NCCL 2.22" in finding.observed


@pytest.mark.parametrize("counts", [(18, 12), (18, 18, 12, 12), (18, 12, 12)])
def test_without_a_majority_nobody_knows_which_are_right(counts: tuple[int, ...]) -> None:
    assert GpuShortInFile().judge(made.alone(made.board(counts)), ()).status is Status.UNKNOWN


def test_gpus_of_a_mesh_may_differ() -> None:
    gpus = [made.gpu(at, links=2 - at % 2, target=made.bus(at ^ 1)) for at in range(4)]
    outcome = GpuShortInFile().judge(made.alone(made.system(made.cpu(*gpus))), ())
    assert outcome.status is Status.NOT_APPLICABLE
    assert "mesh" in outcome.why


def test_gpus_without_any_nvlink_are_no_case() -> None:
    assert GpuShortInFile().judge(made.alone(made.board((0, 0, 0))), ()).status is Status.NOT_APPLICABLE


def test_a_file_that_nccl_refuses_is_told_without_figures() -> None:
    tree = made.board((18, 18, 18, 12))
    cpu = tree.children[0]
    spoilt = replace(cpu, attributes=tuple(pair for pair in cpu.attributes if pair[0] != "numaid"))
    (finding,) = GpuShortInFile().judge(made.alone(replace(tree, children=(spoilt,))), ()).findings
    assert finding.cost.gbs_lost is None
    assert "every ring of the node" in finding.cost.text


# --- TOP005 --------------------------------------------------------------------------------------------------


def test_each_device_once_is_clean() -> None:
    assert DeviceTwiceInFile().judge(made.alone(made.board()), ()).status is Status.CLEAN


def test_a_bus_id_twice_is_told_with_both_lines() -> None:
    outcome = DeviceTwiceInFile().judge(made.alone(made.system(made.cpu(made.gpu(0), made.gpu(1, at=made.bus(0))))), ())
    (finding,) = outcome.findings
    assert finding.severity is Severity.WARNING
    assert f"bus id {made.bus(0)}" in finding.observed
    assert [origin.line for origin in finding.evidence] == [10, 11]


def test_a_nic_twice_is_told_by_name() -> None:
    tree = made.system(made.cpu(made.nic(0), made.nic(1, name="mlx5_0")))
    (finding,) = DeviceTwiceInFile().judge(made.alone(tree), ()).findings
    assert "NIC mlx5_0" in finding.observed


def test_two_names_for_one_port_are_told() -> None:
    tree = made.system(made.cpu(made.nic(0, guid="0xabc"), made.nic(1, guid="0xABC")))
    (finding,) = DeviceTwiceInFile().judge(made.alone(tree), ()).findings
    assert "mlx5_0 and mlx5_1" in finding.observed


@pytest.mark.parametrize("guid", ["0x0", "0x0000000000000000"])
def test_a_guid_of_zeros_is_none(guid: str) -> None:
    tree = made.system(made.cpu(made.nic(0, guid=guid), made.nic(1, guid=guid)))
    assert DeviceTwiceInFile().judge(made.alone(tree), ()).status is Status.CLEAN


def test_trays_of_a_rack_share_bus_ids() -> None:
    tree = made.system(made.cpu(made.gpu(0), made.nic(0), host="0x1"), made.cpu(made.gpu(0), made.nic(0), host="0x2"))
    assert DeviceTwiceInFile().judge(made.alone(tree), ()).status is Status.CLEAN


def test_functions_of_one_card_are_two_devices() -> None:
    pair = [made.nic(number, at=f"0000:29:00.{number}", guid="0xabc") for number in range(2)]
    tree = made.system(made.cpu(*pair))
    assert DeviceTwiceInFile().judge(made.alone(tree), ()).status is Status.CLEAN
