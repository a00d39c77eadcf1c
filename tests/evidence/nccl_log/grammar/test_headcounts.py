"""How many of how many came to where a job meets, and starts that only go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud
from topodiag.evidence.nccl_log.grammar.headcounts import absent_of
from topodiag.evidence.nccl_log.grammar.job_lines import said_of

HOROVOD = (
    "horovod.runner.common.util.timeout.TimeoutException: Timed out waiting for tasks to start. Please check"
    " connectivity between servers. You may need to increase the --start-timeout parameter.\n"
)


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("Timed out after 600s: only 3 of 4 nodes joined", {"came": "3", "all": "4"}),
        ("RuntimeError: rendezvous 'job-7': 1 of 2 nodes joined before the timeout", {"came": "1", "all": "2"}),
        ("RuntimeError: init failed: 1 of 2 workers did not report ready within 600 s", {"came": "1", "all": "2"}),
        ("TimeoutError: not all ranks joined: expected 16, got 8 after 600s", {"came": "8", "all": "16"}),
        ("bootstrap: 3 of 4 PEs connected, timed out", {"came": "3", "all": "4"}),
        ("giving up: 7/8 workers registered", {"came": "7", "all": "8"}),
        ("Timed out waiting for all workers to join", {}),
        ("Timed out waiting for 3 nodes to register", {}),
        (HOROVOD, {}),
    ],
)
def test_a_wait_that_is_over_names_who_came(text: str, counted: dict[str, str]) -> None:
    assert absent_of(text.strip()) == counted


@pytest.mark.parametrize(
    "text",
    [
        "3/4 workers joined, waiting", "INFO 3 of 4 ranks joined so far, waiting",
        "INFO (timeout=600) 3/4 workers joined",
        "3/4 nodes joined within 30 s, waiting for the last call", "3/4 nodes joined within 30 s",
        "4/4 workers joined before the timeout", "3/4 nodes joined after 20 s", "start timeout is 600 s for 4 workers",
        "Timed out waiting for a response of the worker", "timed out waiting for workers to enter allreduce",
        "Timed out waiting for nodes to join will be retried",
        "the job waits until 3 of 4 workers joined or timed out, and will go on",
        "step 3 of 4 started before the timeout",
    ],
)  # fmt: skip
def test_a_start_that_goes_on_counts_nobody(text: str) -> None:
    assert absent_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        HOROVOD,
        "Timed out after 600s: only 3 of 4 nodes joined\n",
        "n1: PMIX ERROR: TIMEOUT in file client/pmix_client_fence.c at line 411\n",
        "slurmstepd: error:  mpi/pmix_v4: pmixp_coll_ring_reset_if_to: n2 [1]: pmixp_coll_ring.c:738: collective"
        " timeout seq=0\n",
    ],
)
def test_a_start_that_waited_in_vain_is_told(tmp_path: Path, text: str) -> None:
    assert first_of(tmp_path, text)["id"] == "JOB001"


def test_the_count_stands_in_the_finding(tmp_path: Path) -> None:
    found = first_of(tmp_path, "TimeoutError: not all ranks joined: expected 16, got 8 after 600s\n")
    assert found["message"] == "not all processes came to where the job meets: 8 of 16 did"


def test_a_start_that_counts_up_accuses_nobody(tmp_path: Path) -> None:
    text = "".join(f"INFO {at} of 4 ranks joined so far, waiting\n" for at in range(1, 4))
    assert loud(tmp_path, text + "INFO all ranks joined\nINFO step 1\n") == []
    assert loud(tmp_path, "".join(f"INFO {at}/4 workers joined, waiting for others\n" for at in range(1, 5))) == []


@pytest.mark.parametrize(
    "text",
    [
        "ray.exceptions.RayError: Cannot provide a placement group of placement_group_specs=[{'GPU': 1.0}] within 1800"
        " seconds. See `ray status` to make sure the cluster has enough resources.",
        "TimeoutError: Placement group creation timed out. Make sure your cluster has enough resources",
    ],
)
def test_a_placement_group_that_ray_cannot_make_has_no_room(text: str) -> None:
    assert (said_of(text) or ("", {}))[1].get("how") == "no room"
    assert said_of("INFO that placement group creation timed out is met by another trial") is None
    assert said_of("INFO No current placement group found. Creating a new placement group.") is None
