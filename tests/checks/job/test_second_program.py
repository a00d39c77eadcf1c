"""JOB004 by a capture: whose processes are on the GPUs of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checks import nodes
from tests.pasted import said
from tests.tables import examples
from topodiag.checks.job.second_program import SecondProgram
from topodiag.model.finding import Confidence, Finding, Outcome, Status
from topodiag.model.provenance import Fact
from topodiag.model.system import Process
from topodiag.model.topics import Topic

OWN = {"SLURM_JOB_ID": "551", "RANK": "0"}


def judged(*more: Process, gpus: Sequence[int] = range(8), env: dict[str, str] = OWN) -> Outcome:
    ranks = tuple(on(gpu, "train.py", env) for gpu in gpus)
    node = nodes.hgx_h100()
    return SecondProgram().judge(replace(node, processes=(*ranks, *more), told=node.told | {Topic.PROCESSES}))


def on(gpu: int, name: str, env: dict[str, str] | None = None, pid: int = 0) -> Process:
    return Process(pid or 100 + gpu, (gpu,), Fact(name), nccl_env=Fact(env or {}))


def only(outcome: Outcome) -> Finding:
    (finding,) = outcome.findings
    return finding


def test_another_job_on_one_gpu_is_found_whatever_its_name() -> None:
    finding = only(judged(on(5, "train.py", {"SLURM_JOB_ID": "17"}, pid=991)))
    assert finding.where.gpus == ("GPU5",)
    assert "pid 991" in finding.message
    assert finding.confidence is Confidence.MEDIUM


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
    assert SecondProgram().judge(replace(nodes.hgx_h100(), told=frozenset())).status is Status.UNKNOWN


HEAD = """+-----------------------------------------------------------------------------+
| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2     |
"""


def table(*gpus: tuple[int, int], screen: str = "Off", processes: str = "") -> str:
    """nvidia-smi's table of GPUs by memory in use, of 81559 MiB, and load."""
    rows = (
        f"|   {index}  A100-SXM4-80GB   On  | 00000000:{index + 1:02X}:00.0 {screen} |                    0 |\n"
        f"| N/A   31C    P0              61W / 400W |  {used}MiB / 81559MiB |    {load:3d}%      Default |\n"
        for index, (used, load) in enumerate(gpus)
    )
    return HEAD + "".join(rows) + processes


RUNS = """| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|    0   N/A  N/A      4711      C   python3                         77000MiB |
"""


@examples("text")
def test_memory_that_idle_gpus_hold_for_nobody_is_told_and_leaves_open_whether_all_is_well(
    text: str, tmp_path: Path
) -> None:
    answer = said(tmp_path, text)
    (told,) = answer["findings"]
    assert (told["id"], told["severity"], told["where"]["gpus"]) == ("JOB004", "info", ["GPU0"])
    assert answer["verdict"]["state"] == "unknown"
    assert any("fuser" in each for each in told["fix"])


@pytest.mark.parametrize(
    "text",
    [
        table((3, 0), (3, 0)),
        table((77000, 97), (3, 0)),  # it works: somebody uses it
        table((77000, 0), (77400, 97)),  # a rank that waits beside one that works
        table((600, 0), (3, 0)),  # a context of a service
        table((77000, 0), (3, 0), processes=RUNS),  # the table says whose it is
        table((77000, 0), (3, 0), screen="On "),  # a screen hangs on it
    ],
)
def test_memory_that_is_free_in_use_or_known_to_be_somebodys_is_not_told(text: str, tmp_path: Path) -> None:
    assert not said(tmp_path, text)["findings"]
