"""What checks of jobs share: clocks of hosts, words for faults, and NICs that another job uses."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.checks import jobs, nodes
from tests.checks.excerpts import HEAD, result_of
from tests.checks.wanted import expect
from tests.tables import examples
from topodiag.checks.job.end.errors import FirstError
from topodiag.checks.network.unused_nics import FewerNicsUsed
from topodiag.checks.nic.job import FewerNicsThanSiblings
from topodiag.checks.registry import Subject, check_of, ids_of
from topodiag.checks.shared.job.faults import FaultInLog, named_faults
from topodiag.checks.shared.job.first_error import first_error
from topodiag.checks.shared.job.nic_uses import fewer_than_others
from topodiag.checks.shared.job.text import clocks_of
from topodiag.model.devices import NicRole
from topodiag.model.finding import Confidence, Outcome, Severity, Status
from topodiag.model.job import GivenSetting, Hca, Job, Process, Rank

NOON = 1.7e9


def job_with(ends: Mapping[str, float], errors: Mapping[str, float]) -> Job:
    """Two nodes whose members completed init at these seconds, with an error of CUDA on each at those."""
    events = [jobs.event("cuda", "Cuda failure 'unknown error'", host, ts=NOON + at) for host, at in errors.items()]
    job = jobs.job(2, events=events)
    world = job.communicators[0]
    host_of = {rank.rank: rank.host for rank in job.ranks}
    times = [NOON + ends[host_of[int(rank)]] if ends else np.nan for rank in world.ranks]
    return replace(job, communicators=(replace(world, completed_ts=np.array(times)), *job.communicators[1:]))


def test_the_order_is_that_of_the_common_clock() -> None:
    job = job_with({"n0": 0.0, "n1": 62.0}, {"n0": 100.0, "n1": 110.0})
    first = first_error(job)
    assert first.host == "n1"
    expect(FirstError().judge(job), observed="*the clock of n1 is 1 min 2 s ahead*", confidence="HIGH")


def test_clocks_that_agree_within_the_barrier_are_left_alone() -> None:
    assert clocks_of(job_with({"n0": 0.0, "n1": 1.5}, {})).ahead_s == {"n0": 0.0, "n1": 0.0}


def test_without_a_common_init_the_finding_says_that_the_clocks_were_not_compared() -> None:
    outcome = FirstError().judge(job_with({}, {"n0": 100.0, "n1": 110.0}))
    expect(outcome, observed="*no common init compares the clocks of n0 and n1*", confidence="MEDIUM")


# --- where a check of the links looks, in a job whose log shows no machine; what lines show alone is in tests/outputs


def test_without_a_print_it_is_said_where_a_narrow_link_is_seen() -> None:
    (outcome,) = (outcome for outcome in result_of(HEAD + "Using network IB\n").outcomes if outcome.check == "PCI001")
    assert "topodiag scan" in outcome.why


# --- the words for faults that a job's lines name, and who may find each


OF_CHECKS = {check.id for check in (check_of(Subject.JOB, name) for name in ids_of(Subject.JOB))
             if issubclass(check, FaultInLog)}  # fmt: skip


def test_each_entry_is_of_a_check_and_each_check_has_an_entry() -> None:
    assert {check for check, _ in named_faults()} == OF_CHECKS


@pytest.mark.parametrize("named", named_faults(), ids=" ".join)
def test_an_entry_says_what_is_wrong_and_what_to_do(named: tuple[str, str]) -> None:
    message, advice = named_faults()[named]
    assert message[0].islower() or message.startswith("CUDA")
    assert not any(text.endswith(".") for text in (message, advice.expected, advice.cost.text, *advice.fix))
    assert advice.fix
    assert all(len(step) < 400 and "  " not in step for step in advice.fix)


# --- NET003 between two jobs on the same nodes: a setting of one of them leaves NICs out that the other uses


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
