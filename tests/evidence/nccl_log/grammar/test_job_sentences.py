"""Words of frameworks for ranks whose calls differ, and texts in which the same words tell of nothing wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud
from topodiag.evidence.nccl_log.grammar.job_lines import said_of

ABORTED = "InternalError: Collective ops is aborted by: Shape mismatch in the collective"


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: Forward order differs across ranks: rank 0 is all-gathering 3 parameters while rank 3 is"
        " all-gathering 2 parameters",
        "RuntimeError: Detected at least one rank that exhausted inputs. Throwing across all ranks.",
        "AssertionError: sync_global_devices name mismatch ('save_100'). Expected: 12; got: 12 12 7 12.",
        f"tensorflow.python.framework.errors_impl.{ABORTED}"
        " instance 100. Op at device /job:worker/replica:0/task:1 expected shape [32] but another got [16].",
        "Collective instance 104 expected type 1 but got type 2",
        "Device /job:worker/replica:0/task:1/device:GPU:0 is joining group with size 2, but that group has size 4",
        "MPIR_Allreduce_intra(844)....: message sizes do not match across processes in the collective routine:"
        " Received 64 but expected 32",
        "An unexpected peer shows up in the launch group with a different launch id than the current group leader.",
    ],
)
def test_calls_that_differ_by_rank_are_told(tmp_path: Path, text: str) -> None:
    found = first_of(tmp_path, text + "\n")
    assert (found["id"], found["severity"]) == ("JOB006", "warning")


@pytest.mark.parametrize(
    "text",
    [
        '[2021-04-01 10:11:12.1: E horovod/common/stall_inspector.cc:150] One or more rank (marked by "!") is stalled'
        " for longer than 120 seconds. Will shutdown.",
        "[E ProcessGroupGloo.cpp:138] Rank 5 successfully reached monitoredBarrier, but received errors while waiting"
        " for send/recv from rank 0. Please check rank 0 logs for faulty rank.",
    ],
)
def test_ranks_that_others_wait_for_are_told(tmp_path: Path, text: str) -> None:
    assert first_of(tmp_path, text + "\n")["id"] == "JOB006"


@pytest.mark.parametrize(
    "text",
    [
        "horovod.runner.common.util.timeout.TimeoutException: Timed out waiting for tasks to start. Please check"
        " connectivity between servers. You may need to increase the --start-timeout parameter.",
        "n1: PMIX ERROR: TIMEOUT in file client/pmix_client_fence.c at line 411",
        "slurmstepd: error:  mpi/pmix_v4: pmixp_coll_ring_reset_if_to: n2 [1]: pmixp_coll_ring.c:738: collective"
        " timeout seq=0",
    ],
)
def test_a_start_that_waited_in_vain_is_told(tmp_path: Path, text: str) -> None:
    assert first_of(tmp_path, text + "\n")["id"] == "JOB001"


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


@pytest.mark.parametrize(
    "text",
    [
        "Forward order is validated in the first iteration",
        "Device /job:worker/replica:0/task:1/device:GPU:0 is joining group with size 2",
        "rank 5 successfully reached monitoredBarrier",
        "message sizes are compared across processes in debug builds",
    ],
)
def test_the_same_words_without_a_difference_accuse_nobody(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text + "\n") == []
    said = said_of(text)
    assert said is None or "told" not in said[1]
