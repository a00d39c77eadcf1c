"""What schedulers, clouds and launchers say of a job that they ended."""

from __future__ import annotations

import pytest

from topodiag.evidence.nccl_log.grammar.job_lines import said_of


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", "memory"),
        ("ray.exceptions.ActorDiedError: The actor is dead because its node has died. Node Id: ab1", "node failure"),
        ("Job deleted at request of user@login1", "cancelled"),
        ("job 88.1 exceeded hard wallclock time - initiate terminate method", "limit"),
        ("AzureMLCompute job failed. JobNodePreempted: a node was taken away", "preempted"),
        ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 12 got signal: 15", "stopped"),
        ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 12 got signal: 2", "cancelled"),
    ],
)
def test_a_line_says_who_ended_the_job(text: str, how: str) -> None:
    kind, named = said_of(text) or ("", {})
    assert (kind, named.get("how")) == ("ended", how)


@pytest.mark.parametrize(
    "text",
    [
        "Tasks are killed by the memory monitor when the node runs low on memory",
        "the actor is restarted when its node has died", "hard wallclock time: 24:00:00",
        "Job submitted by user@login1",
    ],
)  # fmt: skip
def test_what_a_text_explains_or_sets_is_no_end(text: str) -> None:
    assert said_of(text) is None
