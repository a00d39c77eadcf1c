"""JOB004 by a capture: whose processes are on the GPUs of a job."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.checks import nodes
from tests.checks.wanted import expect
from topodiag.checks.job.second_program import SecondProgram
from topodiag.model.finding import Finding, Outcome, Status
from topodiag.model.provenance import Fact, Topic
from topodiag.model.system import Process

OWN = {"SLURM_JOB_ID": "551", "RANK": "0"}


def judged(*more: Process, gpus: Sequence[int] = range(8), env: dict[str, str] = OWN) -> Outcome:
    ranks = tuple(on(gpu, "train.py", env) for gpu in gpus)
    node = nodes.hgx_h100()
    return SecondProgram().judge(replace(node, processes=(*ranks, *more), topics=node.topics | {Topic.PROCESSES}))


def on(gpu: int, name: str, env: dict[str, str] | None = None, pid: int = 0) -> Process:
    return Process(pid or 100 + gpu, (gpu,), Fact(name), nccl_env=Fact(env or {}))


def only(outcome: Outcome) -> Finding:
    (finding,) = outcome.findings
    return finding


def test_another_job_on_one_gpu_is_found_whatever_its_name() -> None:
    outcome = judged(on(5, "train.py", {"SLURM_JOB_ID": "17"}, pid=991))
    expect(outcome, gpus=("GPU5",), message="*pid 991*", confidence="MEDIUM")


def test_where_no_job_is_known_another_name_tells() -> None:
    assert only(judged(on(5, "serve.py", pid=991), env={})).where.gpus == ("GPU5",)


@pytest.mark.parametrize(
    "more",
    [
        (),
        (on(5, "loader.py", OWN, pid=991),),
        (on(5, "nv-hostengine", pid=991),),
        tuple(on(gpu, "agent.py", pid=900 + gpu) for gpu in range(8)),
        (Process(991, (0, 1, 2, 3, 4, 5, 6, 7), Fact("serve.py")),),
    ],
    ids=["alone", "of the job", "a watcher", "on all of them", "with all GPUs open"],
)
def test_what_belongs_to_the_job_or_watches_is_clean(more: tuple[Process, ...]) -> None:
    assert judged(*more).status is Status.CLEAN


def test_two_gpus_do_not_tell_which_process_is_the_odd_one() -> None:
    assert judged(on(1, "serve.py", pid=991), gpus=range(2)).status is Status.NOT_APPLICABLE


def test_without_a_list_of_processes_nothing_is_known() -> None:
    assert SecondProgram().judge(replace(nodes.hgx_h100(), topics=frozenset())).status is Status.UNKNOWN
