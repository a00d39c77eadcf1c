"""NET003 between two jobs on the same nodes: a setting of one of them leaves NICs out that the other uses."""

from dataclasses import replace

import pytest

from tests.checks import jobs, nodes
from tests.tables import examples
from topodiag.checks.network.unused_nics import FewerNicsUsed
from topodiag.checks.nic.job import FewerNicsThanSiblings
from topodiag.checks.shared.job.nic_uses import fewer_than_others
from topodiag.model.devices import NicRole
from topodiag.model.finding import Confidence, Outcome, Severity, Status
from topodiag.model.job import GivenSetting, Hca, Job, Process, Rank


def job(count: int, host: str = "a", **settings: str) -> Job:
    hcas = tuple(Hca(index, f"mlx5_{index}", 1, "IB", speed_mbps=400_000) for index in range(count))
    given = {name: GivenSetting(name, value) for name, value in settings.items()}
    process = Process(host, 1, hcas=hcas, settings=given)
    return Job("job", 1, (), (process,), (), jobs.connections([], [host], 1), (host,))


def test_a_setting_that_leaves_out_what_another_job_uses_is_found() -> None:
    comparison = fewer_than_others(job(1, NCCL_IB_HCA="mlx5_0"), [job(8)])
    assert (len(comparison.kept), len(comparison.more), comparison.hosts) == (1, 8, ("a",))
    assert comparison.filters[0].value == "mlx5_0"


def test_without_a_setting_the_nic_may_be_lost_and_not_left_out() -> None:
    assert fewer_than_others(job(1), [job(8)]) is None


def test_a_job_on_other_nodes_says_nothing() -> None:
    assert fewer_than_others(job(1, NCCL_IB_HCA="mlx5_0"), [job(8, host="b")]) is None


def test_the_job_with_all_nics_is_clean() -> None:
    assert fewer_than_others(job(8, NCCL_IB_HCA="mlx5"), [job(1)]) is None


def captured(count: int, **settings: str) -> Job:
    return replace(job(count, **settings), machines={"a": nodes.hgx_h100()})


def test_a_setting_that_leaves_out_what_the_capture_of_the_node_shows_up_is_found() -> None:
    comparison = fewer_than_others(captured(4, NCCL_IB_HCA="mlx5_0,mlx5_1,mlx5_2,mlx5_3"), [])
    assert (len(comparison.kept), len(comparison.more), comparison.captured) == (4, 8, True)
    (finding,) = FewerNicsUsed().judge(captured(4, NCCL_IB_HCA="mlx5_0,mlx5_1,mlx5_2,mlx5_3")).findings
    assert finding.message.endswith("mlx5_3 leaves this job 4 of the 8 NICs that are up there")


def test_without_a_setting_the_capture_blames_none() -> None:
    assert fewer_than_others(captured(4), []) is None


@pytest.mark.parametrize("change", ["down", "slower", "storage"])
def test_nics_that_the_job_could_not_use_are_not_left_out(change: str) -> None:
    run = captured(7, NCCL_IB_HCA="^mlx5_7")
    node = nodes.hgx_h100()
    last = node.nics[7]
    port = last.ports[0]
    other = {
        "down": replace(last, ports=(replace(port, state=nodes.read("DOWN")),)),
        "slower": replace(last, ports=(replace(port, rate_gbps=nodes.read(100.0)),)),
        "storage": replace(last, role=NicRole.STORAGE),
    }[change]
    run = replace(run, machines={"a": replace(node, nics=(*node.nics[:7], other))})
    assert fewer_than_others(run, []) is None
    unset = replace(run, processes=(replace(run.processes[0], settings={}),), ranks=seated(8))
    assert FewerNicsThanSiblings().judge(unset).status is Status.NOT_APPLICABLE


def seated(ranks: int) -> tuple[Rank, ...]:
    return tuple(Rank(rank, "a", 1, rank, process=0) for rank in range(ranks))


def short(count: int, ranks: int = 8, **settings: str) -> Outcome:
    """NIC005 of a job of one node that lists `count` of its eight NICs, with a rank on so many of its eight GPUs."""
    return FewerNicsThanSiblings().judge(replace(captured(count, **settings), ranks=seated(ranks)))


def test_fewer_nics_than_the_capture_shows_up_name_both_sources() -> None:
    (finding,) = short(7).findings
    assert finding.message == "a: NCCL lists 7 RDMA devices, and the capture of the machine shows 8 up"
    assert (finding.severity, finding.confidence, finding.where.nics) == (
        Severity.WARNING,
        Confidence.MEDIUM,
        ("mlx5_7",),
    )


@examples("count", "ranks", "settings")
def test_where_all_nics_are_there_or_something_explains_it_nothing_is_said(
    count: int, ranks: int, settings: dict[str, str]
) -> None:
    assert short(count, ranks, **settings).status is Status.NOT_APPLICABLE
