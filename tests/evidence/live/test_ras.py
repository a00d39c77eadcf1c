"""Answers of NCCL's RAS, and stacks of processes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.tables import examples, parts, texts, with_texts
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.ras_client import in_order, read_ras
from topodiag.evidence.live.stacks import read_stacks
from topodiag.model.ras import RasProcess

TEXTS = texts(__file__)
HEAD = TEXTS["head"]
WARNINGS = TEXTS["warnings"]


@examples("text", "answer")
def test_an_answer_says_what_its_row_says(text: str, answer: dict[str, Any]) -> None:
    (ras_answer,) = read_ras(with_texts(text, __file__), "ras.txt")
    assert parts(ras_answer, answer, whole=True) == answer


def test_an_answer_that_was_cut_is_known_as_such() -> None:
    (ras_answer,) = read_ras(HEAD[: HEAD.index("Errors\n=")], "ras.txt")
    assert not ras_answer.whole


def test_answers_of_a_loop_in_one_file_are_several() -> None:
    text = ("OK\n" + HEAD + WARNINGS) * 3
    assert [ras_answer.origin.line for ras_answer in read_ras(text, "loop.txt") if ras_answer.origin] == [2, 27, 52]


def status(ranks: int, behind: int = -1, missing: int = -1, stamp: str = "2026-11-22 08:19:50") -> dict[str, object]:
    members = [
        {
            "rank": rank, "host": "10.0.0.1", "pid": 100 + rank, "cuda_dev": rank, "nvml_dev": rank,
            "status": {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
                       "abort_flag": False},
            "collective_counts": {"Broadcast": 1, "AllReduce": 230 if rank == behind else 231},
        }
        for rank in range(ranks) if rank != missing
    ]  # fmt: skip
    records = [
        {"rank": missing, "host": "10.0.0.1", "pid": 100 + missing, "cuda_dev": missing, "nvml_dev": missing,
         "status": {"unresponsive": True, "considered_dead": False}}
    ]  # fmt: skip
    return {
        "nccl_version": "2.28.7", "cuda_runtime_version": 13000, "cuda_driver_version": 13000, "timestamp": stamp,
        "communicators_count": 1,
        "communicators": [{
            "hash": "0x3d9f2208e70d8f94", "secondary_hash": "0x1:0x2", "size": ranks, "ranks_count": len(members),
            "missing_ranks_count": len(records) if missing >= 0 else 0, "ranks": members,
            "missing_ranks": records if missing >= 0 else [],
        }],
        "ras": {"collection_time_sec": 0.028, "timeouts_count": 0},
    }  # fmt: skip


def test_json_names_every_rank() -> None:
    (ras_answer,) = read_ras("SERVER PROTOCOL 2\nOK\nOK\n" + json.dumps(status(8, behind=5), indent=2), "ras.json")
    (comm,) = ras_answer.communicators
    assert (ras_answer.time, ras_answer.total, len(comm.members)) == (1795335590.0, 1, 8)
    assert comm.counts["AllReduce"] == {231: 7, 230: 1}
    assert comm.states == {"RUNNING": 8}


def test_the_comma_that_2_28_7_forgets_is_put_back() -> None:
    right = json.dumps(status(4, missing=2), indent=2)
    at = right.index('"missing_ranks":')
    wrong = right[:at] + right[at:].replace('"nvml_dev": 2,', '"nvml_dev": 2', 1)
    with pytest.raises(json.JSONDecodeError):
        json.loads(wrong)
    assert read_ras(wrong, "ras.json") == read_ras(right, "ras.json")
    assert read_ras(wrong, "ras.json")[0].silent == (RasProcess("10.0.0.1", 102, "2"),)


def test_a_rank_that_left_is_missing_and_not_dead() -> None:
    document = status(4, missing=1)
    document["communicators"][0]["missing_ranks"][0]["status"]["unresponsive"] = False  # type: ignore[index]
    (ras_answer,) = read_ras(json.dumps(document, indent=2), "ras.json")
    assert (ras_answer.silent, ras_answer.dead) == ((), ())
    assert ras_answer.communicators[0].states == {"RUNNING": 3, "NOCOMM": 1}


def test_two_answers_of_one_second_that_say_the_same_are_one_snapshot() -> None:
    (one,) = read_ras(json.dumps(status(2), indent=2), "a.json")
    later = replace(one, source="c.json", time=(one.time or 0.0) + 5)
    assert in_order([later, one, replace(one, source="b.json")]) == (one, later)


# --- `py-spy dump`: the main thread of each process, and which rank it is


DUMP = TEXTS["dump"]


def test_the_main_thread_of_each_process_is_read_with_its_rank() -> None:
    text = "".join(f"== rank {rank} ==\n{DUMP.format(pid=5121 + rank, command='python train.py')}\n" for rank in (0, 7))
    stacks = read_stacks(text, "stacks.txt")
    assert [(stack.pid, stack.rank, stack.who) for stack in stacks] == [(5121, 0, "rank 0"), (5128, 7, "rank 7")]
    assert [str(frame) for frame in stacks[0].frames] == [
        "wait (threading.py)", "get (queue.py)", "__next__ (fairseq/data/iterators.py)",
    ]  # fmt: skip
    assert (stacks[0].origin and stacks[0].origin.line) == 5


def test_a_file_or_the_title_of_a_process_names_who_it_is() -> None:
    assert [stack.who for stack in read_stacks(DUMP.format(pid=9, command="python"), "out/rank3.pyspy.txt")] == [
        "rank 3"
    ]
    titled = DUMP.format(pid=118, command="VLLM::Worker_TP1")
    assert [stack.who for stack in read_stacks(titled, "dump.txt")] == ["TP1"]
    assert [stack.who for stack in read_stacks(DUMP.format(pid=9, command="python"), "dump.txt")] == ["process 9"]


def test_a_dump_is_known_by_the_heads_of_its_threads() -> None:
    assert Kind.STACKS in kind_of_file(DUMP.format(pid=9, command="python").encode()).kinds
    assert Kind.STACKS not in kind_of_file(b"Thread 1 finished (active users: 3)\nProcess 9: done\n").kinds
