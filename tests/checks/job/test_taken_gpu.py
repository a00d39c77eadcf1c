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


@pytest.mark.parametrize("line", [VLLM.format("44.70"), SGLANG.format("21.9"), "INFO Free memory on device: 31 GiB\n"])
def test_a_desktop_and_the_process_itself_take_little(tmp_path: Path, line: str) -> None:
    assert taken_before(facts_of(line)) == 0
    assert "JOB004" not in loud(tmp_path, line)
