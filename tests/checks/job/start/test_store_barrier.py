"""JOB001 by what torch's ranks print where they meet at the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud, said

ADDED = "INFO:torch.distributed.distributed_c10d:Added key: store_based_barrier_key:{1} to store for rank: {0}\n"
WAITS = (
    "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize process group for rank: {0},"
    " key: store_based_barrier_key:{1} (world_size={2}, worker_count={3}, timeout=0:30:00)\n"
)
NEWER = (
    "[rank{0}]:I0612 10:00:00.123000 140 torch/distributed/distributed_c10d.py:900] Waiting in store based barrier to"
    " initialize process group for 10 seconds, rank: {0}, key: store_based_barrier_key:{1} (world_size={2},"
    " num_workers_joined={3}, timeout=0:30:00 error=Timed out)\n"
)
DONE = (
    "INFO:torch.distributed.distributed_c10d:Rank {0}: Completed store-based barrier for"
    " key:store_based_barrier_key:{1} with {2} nodes.\n"
)
TIMED_OUT = (
    "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key:"
    " store_based_barrier_key:1 (world_size=4, worker_count=3, timeout=0:30:00)\n"
)
STEPS = "".join(f"Epoch: [0][{at}/500]\tTime 0.210 (0.215)\tData 0.002 (0.002)\tLoss 6.9\n" for at in range(1, 9))


def of_ranks(line: str, ranks: list[int], key: int, *more: int) -> str:
    return "".join(line.format(rank, key, *more) for rank in ranks)


OTHERS = [0, 1, 3]
ALL = [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (of_ranks(ADDED, OTHERS, 1) + 2 * of_ranks(WAITS, OTHERS, 1, 4, 3), "rank 2 never came"),
        (of_ranks(NEWER, OTHERS, 1, 4, 3), "rank 2 never came"),
        (of_ranks(ADDED, ALL, 1) + of_ranks(DONE, ALL, 1, 4) + of_ranks(ADDED, OTHERS, 2)
         + of_ranks(WAITS, OTHERS, 2, 4, 3), "rank 2 never came"),
        (3 * of_ranks(WAITS, [0], 1, 4, 3), ": 3 for 4 ranks"),
        (3 * of_ranks(WAITS, [0], 1, 4, 5), ": 5 for 4 ranks"),
        (of_ranks(ADDED, OTHERS, 1) + of_ranks(WAITS, OTHERS, 1, 4, 3) + TIMED_OUT, "rank 2 never came"),
    ],
)  # fmt: skip
def test_who_never_came_is_told(tmp_path: Path, text: str, words: str) -> None:
    finding = said(tmp_path, text)["findings"][0]
    assert finding["id"] == "JOB001"
    assert words in finding["message"]
    assert finding["severity"] != "info"


@pytest.mark.parametrize(
    "text",
    [
        of_ranks(ADDED, ALL, 1) + of_ranks(WAITS, OTHERS, 1, 4, 3) + of_ranks(DONE, ALL, 1, 4),
        2 * of_ranks(WAITS, OTHERS, 1, 4, 3) + of_ranks(DONE, [0], 1, 4),
        of_ranks(ADDED, OTHERS, 1) + 2 * of_ranks(WAITS, OTHERS, 1, 4, 3) + of_ranks(ADDED, [2], 1),
        3 * of_ranks(WAITS, [0], 1, 4, 3) + of_ranks(WAITS, [0], 1, 4, 4),
        3 * of_ranks(WAITS, [0], 1, 4, 3) + of_ranks(ADDED, [0], 2),
        2 * of_ranks(WAITS, OTHERS, 1, 4, 3) + STEPS,
        2 * of_ranks(WAITS, OTHERS, 1, 4, 3) + 200 * "loading the tokenizer and the weights of the model\n",
        of_ranks(ADDED, ALL, 1),
        of_ranks(WAITS, [0], 1, 4, 3),
        of_ranks(ADDED, [0], 1),
    ],
)
def test_a_start_that_waits_for_a_while_accuses_nobody(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []


def test_ranks_that_waited_once_and_went_on_are_not_told(tmp_path: Path) -> None:
    for text in (of_ranks(DONE, [0], 1, 4), STEPS):
        assert not said(tmp_path, of_ranks(WAITS, [0], 1, 4, 3) + text)["findings"]


LIMIT = "slurmstepd: error: *** JOB 88 ON n7 CANCELLED AT 2026-03-01T09:14:02 DUE TO TIME LIMIT ***\n"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        pytest.param(2 * of_ranks(WAITS, OTHERS, 1, 4, 3) + LIMIT, "hung", id="they wait for a rank until the end"),
        pytest.param(2 * of_ranks(WAITS, OTHERS, 1, 4, 3), "at_risk", id="nobody ended them"),
        pytest.param(of_ranks(WAITS, ALL, 1, 4, 3) + of_ranks(DONE, ALL, 1, 4) + LIMIT, "unknown", id="all came"),
        pytest.param(2 * of_ranks(WAITS, OTHERS, 1, 4, 3) + STEPS + LIMIT, "unknown", id="they worked"),
    ],
)
def test_who_waits_for_a_rank_until_the_time_limit_hangs(text: str, state: str, tmp_path: Path) -> None:
    assert said(tmp_path, text)["verdict"]["state"] == state
