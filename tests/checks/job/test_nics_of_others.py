"""NET003 between two jobs on the same nodes: a setting of one of them leaves NICs out that the other uses."""

from __future__ import annotations

from tests.checks import jobs
from topodiag.checks.job.nics_of_others import fewer_than_others
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
