"""NET003 between two jobs on the same nodes: a setting of one of them leaves NICs out that the other uses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks import jobs, nodes
from topodiag.checks.job.nics import FewerNicsUsed
from topodiag.checks.job.nics_of_others import fewer_than_others
from topodiag.model.devices import NicRole
from topodiag.model.job import Given, Hca, Job, Process


def job(count: int, host: str = "a", **settings: str) -> Job:
    hcas = tuple(Hca(index, f"mlx5_{index}", 1, "IB", speed_mbps=400_000) for index in range(count))
    given = {name: Given(name, value) for name, value in settings.items()}
    process = Process(host, 1, hcas=hcas, settings=given)
    return Job("job", 1, (), (process,), (), jobs.connections([], [host], 1), (host,))


def test_a_setting_that_leaves_out_what_another_job_uses_is_found() -> None:
    found = fewer_than_others(job(1, NCCL_IB_HCA="mlx5_0"), [job(8)])
    assert found is not None
    assert (len(found.kept), len(found.more), found.hosts) == (1, 8, ("a",))
    assert found.filters[0].value == "mlx5_0"


def test_without_a_setting_the_nic_may_be_lost_and_not_left_out() -> None:
    assert fewer_than_others(job(1), [job(8)]) is None


def test_a_job_on_other_nodes_says_nothing() -> None:
    assert fewer_than_others(job(1, NCCL_IB_HCA="mlx5_0"), [job(8, host="b")]) is None


def test_the_job_with_all_nics_is_clean() -> None:
    assert fewer_than_others(job(8, NCCL_IB_HCA="mlx5"), [job(1)]) is None


def captured(count: int, **settings: str) -> Job:
    return replace(job(count, **settings), machines={"a": nodes.hgx_h100()})


def test_a_setting_that_leaves_out_what_the_capture_of_the_node_shows_up_is_found() -> None:
    found = fewer_than_others(captured(4, NCCL_IB_HCA="mlx5_0,mlx5_1,mlx5_2,mlx5_3"), [])
    assert found is not None
    assert (len(found.kept), len(found.more), found.captured) == (4, 8, True)
    (told,) = FewerNicsUsed().judge(captured(4, NCCL_IB_HCA="mlx5_0,mlx5_1,mlx5_2,mlx5_3")).findings
    assert told.message.endswith("mlx5_3 leaves this job 4 of the 8 NICs that are up there")


def test_without_a_setting_the_capture_blames_none() -> None:
    assert fewer_than_others(captured(4), []) is None


@pytest.mark.parametrize("change", ["down", "slower", "storage"])
def test_nics_that_the_job_could_not_use_are_not_left_out(change: str) -> None:
    made = captured(7, NCCL_IB_HCA="^mlx5_7")
    node = nodes.hgx_h100()
    last = node.nics[7]
    port = last.ports[0]
    other = {
        "down": replace(last, ports=(replace(port, state=nodes.read("DOWN")),)),
        "slower": replace(last, ports=(replace(port, rate_gbps=nodes.read(100.0)),)),
        "storage": replace(last, role=NicRole.STORAGE),
    }[change]
    made = replace(made, machines={"a": replace(node, nics=(*node.nics[:7], other))})
    assert fewer_than_others(made, []) is None
