"""JOB004 by memory of a GPU that is taken before the job has any."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud
from topodiag.checks.job.shared_gpu import taken_before
from topodiag.evidence.nccl_log.grammar.facts import facts_of

VLLM = (
    "ERROR 06-30 13:53:17 [core.py:9] ValueError: Free memory on device ({}/47.38 GiB) on startup is less than desired"
    " GPU memory utilization (0.95, 45.01 GiB). Decrease GPU memory utilization or reduce GPU memory used by other"
    " processes.\n"
)
SGLANG = (
    "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes."
    " pre_model_load_memory={}, local_gpu_memory=23.1, local_gpu_memory * 0.9=20.79\n"
)


<<<<<<< HEAD
def table(*used: int) -> str:
    return "".join(ROW.format(index=index, used=mib, load=100 if mib > 1000 else 0) for index, mib in enumerate(used))


@pytest.mark.parametrize(
    "text",
    [
        table(15514, 0, 0, 0) + FULL,
        table(3, 15514, 3, 3) + OF_ONE.format(1) + " of which 102.00 MiB is free.\n",
        table(15514, 3) + "cudaErrorMemoryAllocation: out of memory\nRuntimeError: CUDA error: out of memory\n",
    ],
)
def test_one_full_gpu_beside_empty_ones_is_told_before_the_end_of_the_program(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text)[0] == "JOB004"


@pytest.mark.parametrize(
    "text",
    [
        table(15514, 0, 0, 0),
        table(15514, 15514, 15514, 15514) + FULL,
        table(15514, 15514, 15514, 0) + FULL,
        table(0, 0, 0, 0) + FULL,
        table(700, 3, 3, 3) + FULL,
        table(15514, 0, 0, 0) + OWN,
        table(15514, 0, 0, 0) + OF_ONE.format(2) + " of which 102.00 MiB is free.\n",
    ],
)
def test_memory_of_the_jobs_own_and_of_other_gpus_is_not(tmp_path: Path, text: str) -> None:
    assert "JOB004" not in loud(tmp_path, text)


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


@pytest.mark.parametrize("line", [VLLM.format("31.44"), VLLM.format("0.4").replace("device (", "device cuda:0 ("),
                                  SGLANG.format("9.48")])  # fmt: skip
def test_what_an_engine_finds_taken_at_its_start_is_told(tmp_path: Path, line: str) -> None:
    answer = said(tmp_path, line)
    assert answer["findings"][0]["id"] == "JOB004"
    assert answer["findings"][0]["severity"] == "error"


=======
>>>>>>> tst7
@pytest.mark.parametrize("line", [VLLM.format("44.70"), SGLANG.format("21.9"), "INFO Free memory on device: 31 GiB\n"])
def test_a_desktop_and_the_process_itself_take_little(tmp_path: Path, line: str) -> None:
    assert taken_before(facts_of(line)) == 0
    assert "JOB004" not in loud(tmp_path, line)
