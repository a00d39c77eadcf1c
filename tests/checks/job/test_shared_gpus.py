"""JOB004 by a capture and by memory that is taken: whose processes are on the GPUs of a job."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import topodiag
from tests.checks import nodes
from tests.checks.wanted import expect
from tests.pasted import loud
from topodiag.checks.job.second_program import SecondProgram
from topodiag.checks.job.shared_gpu import taken_before
from topodiag.evidence.nccl_log.grammar.ends import facts_of
from topodiag.model.finding import Finding, Outcome, Status
from topodiag.model.node import Process
from topodiag.model.provenance import Fact, Topic

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


# --- JOB004 by memory of a GPU that is taken before the job has any


VLLM = (
    "ERROR 06-30 13:53:17 [core.py:9] ValueError: Free memory on device ({}/47.38 GiB) on startup is less than desired"
    " GPU memory utilization (0.95, 45.01 GiB). Decrease GPU memory utilization or reduce GPU memory used by other"
    " processes.\n"
)
SGLANG = (
    "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes."
    " pre_model_load_memory={}, local_gpu_memory=23.1, local_gpu_memory * 0.9=20.79\n"
)


STEPS = "".join(f"epoch: 0  step: {step}  mask_loss: 1.0157  batch: 0.90\n" for step in range(100, 900, 100))
OTHERS = (
    "RuntimeError: CUDA out of memory. Tried to allocate 84.00 MiB (GPU 2; 11.76 GiB total capacity;"
    " 1.41 GiB already allocated; 80.69 MiB free; 1.45 GiB reserved in total by PyTorch)\n"
)


@pytest.mark.parametrize(
    ("text", "leads"),
    [(STEPS + OTHERS, True), (OTHERS + STEPS, False)],
    ids=["the work stands above", "a later launch works"],
)
def test_memory_that_others_have_counts_where_no_later_launch_works(tmp_path: Path, text: str, leads: bool) -> None:
    assert ("JOB004" in loud(tmp_path, text)) is leads


@pytest.mark.parametrize("line", [VLLM.format("44.70"), SGLANG.format("21.9"), "INFO Free memory on device: 31 GiB\n"])
def test_a_desktop_and_the_process_itself_take_little(tmp_path: Path, line: str) -> None:
    assert taken_before(facts_of(line)) == 0
    assert "JOB004" not in loud(tmp_path, line)


FULL = "GPU 0 has a total capacity of 23.69 GiB of which 58.81 MiB is free. "
OURS = "Including non-PyTorch memory, this process has {} GiB memory in use. "
HELD = "Process {} has {} GiB memory in use. "
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n'


def fell(pid: int, others: str, own: str) -> str:
    """The traceback of a rank that ran out of memory beside a process."""
    return (
        f"{TRACEBACK}torch.OutOfMemoryError: CUDA out of memory. {FULL}{HELD.format(pid, others)}{OURS.format(own)}\n"
    )


@pytest.mark.parametrize(
    ("others", "who"),
    [
        pytest.param("11.82", "another rank of this job holds", id="each has what the other says"),
        pytest.param("14.10", "process 71 holds", id="a third one has more than that"),
    ],
)
def test_ranks_that_hold_one_gpu_beside_each_other_are_no_strangers(tmp_path: Path, others: str, who: str) -> None:
    (tmp_path / "rank.0").write_text(fell(71, others, "11.80"))
    (tmp_path / "rank.1").write_text(fell(70, "11.80", "11.82"))
    (finding,) = (found for found in topodiag.diagnose([str(tmp_path)]).findings if found.id == "JOB004")
    assert finding.message.startswith(who)


@pytest.mark.parametrize("lines", [4, 400])
def test_memory_that_an_earlier_launch_missed_is_no_cause_of_a_later_end(tmp_path: Path, lines: int) -> None:
    for number in range(2):
        later = "a line of the next launch\n" * lines + f"{TRACEBACK}KeyError: 'rank {number}'\n"
        (tmp_path / f"rank.{number}").write_text(fell(70 + number, "14.10", "8.00") + later)
    ids = [finding.id for finding in topodiag.diagnose([str(tmp_path)]).findings]
    assert ("JOB004" in ids) == (lines < 200)
