"""Hosts of ranks by the launcher's word alone."""

from __future__ import annotations

from tests.checks.excerpts import result_of
from tests.tables import examples

TRACE = '[rank12]: Traceback (most recent call last):\n[rank12]:   File "t.py", line 9, in <module>\n'
ENDED = "[rank12]: ValueError: tokenizer file truncated\n"


@examples("lines", "nodes")
def test_a_rank_without_a_host_is_where_slurm_says_that_its_task_ended(lines: str, nodes: tuple[str, ...]) -> None:
    finding = next(finding for finding in result_of(TRACE + ENDED + lines).findings if finding.id == "JOB009")
    assert finding.where.nodes == nodes


def test_a_fault_of_a_gpu_without_a_host_is_where_the_one_task_failed() -> None:
    text = "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\nsrun: error: n7: task 1: Aborted\n"
    assert result_of(text).findings[0].where.nodes == ("n7",)
