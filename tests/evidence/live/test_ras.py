"""Answers of NCCL's RAS: text of every generation, JSON, the malformed one too, and monitors."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.tables import texts
from topodiag.evidence.live.ras_client import in_order, read_ras
from topodiag.model.ras import RasAnswer, RasProcess

TEXTS = texts(__file__)
HEAD = TEXTS["head"]
WARNINGS = """\
Warnings
========

"""


def answer(errors: str = "", warnings: str = "") -> RasAnswer:
    (ras_answer,) = read_ras(HEAD + errors + WARNINGS + warnings, "ras.txt")
    return ras_answer


def test_the_job_and_its_communicators_are_counted() -> None:
    ras_answer = answer()
    assert (ras_answer.version, ras_answer.nodes, ras_answer.processes, ras_answer.total, ras_answer.whole) == (
        "2.27.3",
        4,
        32,
        9,
        True,
    )
    assert not ras_answer.communicators


def test_several_tables_of_an_uneven_job_end_in_the_totals() -> None:
    text = HEAD.replace(
        "  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  (total)\n"
        "      4          8            1         32       32\n",
        "  Nodes  Processes         GPUs\n          per node  per process\n      3          8            1\n"
        "      1          7            1\n\n  Nodes  Processes         GPUs\n(total)    (total)      (total)\n"
        "      4         31           31\n\nThe outlier node:\n"
        "  Node 10.0.0.4 running processes 11,12,13,14,15,16,17\n",
    )
    (ras_answer,) = read_ras(text + WARNINGS, "ras.txt")
    assert (ras_answer.nodes, ras_answer.processes) == (4, 31)


def test_an_outlier_is_named_with_its_count_and_the_others_are_counted() -> None:
    ras_answer = answer(
        warnings="#0-0 (27a079b828ff1a75) MISMATCH\n"
        "  Communicator ranks have different AllReduce operation counts\n"
        "  30 ranks have launched up to operation 6650\n"
        "  2 ranks have launched up to operation 6649\n"
        "  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210\n"
        "  Rank 2 -- GPU 2 (NVML 6) managed by process 483074 on node 172.16.64.210\n\n"
    )
    (comm,) = ras_answer.communicators
    assert (comm.hash, comm.size) == (0x27A079B828FF1A75, 32)
    assert comm.counts == {"AllReduce": {6650: 30, 6649: 2}}
    assert [(member.rank, member.counts["AllReduce"]) for member in comm.members] == [(0, 6649), (2, 6649)]
    assert comm.members[1].process == RasProcess("172.16.64.210", 483074, "2 (NVML 6)")


def test_one_rank_alone_has_a_form_of_its_own() -> None:
    ras_answer = answer(
        warnings="#0-0 (27a079b828ff1a75) MISMATCH\n"
        "  Communicator ranks have different collective operation counts\n"
        "  31 ranks have launched up to operation 7\n"
        "  Rank 9 has not launched any operations -- GPU 1 managed by process 12 on node 10.0.0.2\n"
    )
    assert ras_answer.communicators[0].counts == {"": {7: 31, 0: 1}}
    assert ras_answer.communicators[0].members[0].counts == {"": 0}


def test_status_and_counts_of_one_rank_stand_below_one_header() -> None:
    ras_answer = answer(
        warnings="#0-0 (8e7e079a6d65e71f) MISMATCH\n"
        "  Communicator ranks have different status\n"
        "  31 ranks have status RUNNING\n"
        "  Rank 2 has status FINALIZE -- GPU 2 managed by process 13 on node 10.0.0.1\n"
        "  Communicator ranks have different AllReduce operation counts\n"
        "  31 ranks have launched up to operation 81\n"
        "  Rank 2 has launched up to operation 80 -- GPU 2 managed by process 13 on node 10.0.0.1\n\n"
    )
    (member,) = ras_answer.communicators[0].members
    assert (member.state, dict(member.counts), member.missing) == ("FINALIZE", {"AllReduce": 80}, False)
    assert ras_answer.communicators[0].states == {"RUNNING": 31, "FINALIZE": 1}


def test_processes_that_do_not_answer_and_the_ranks_they_hold() -> None:
    ras_answer = answer(
        errors="INCOMPLETE\n  Missing communicator data from 1 job process\n"
        "  Process 3487984 on node 172.16.64.213 managing GPU 5\n\n"
        "#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n  The missing rank: 21\n\n",
        warnings="TIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n\n",
    )
    assert ras_answer.silent == (RasProcess("172.16.64.213", 3487984, "5"),)
    assert ras_answer.dead == ()
    assert [(member.rank, member.missing) for member in ras_answer.communicators[0].members] == [(21, True)]


def test_processes_that_ras_gave_up_are_dead() -> None:
    ras_answer = answer(
        errors="DEAD\n  2 job processes are considered dead (unreachable via the RAS network)\n"
        "  Process 5 on node 10.0.0.1 managing GPU 0\n  Process 6 on node 10.0.0.1 managing GPUs 1,2\n\n"
    )
    assert ras_answer.dead == (RasProcess("10.0.0.1", 5, "0"), RasProcess("10.0.0.1", 6, "1,2"))
    assert ras_answer.silent == ()


def test_errors_of_ranks_are_read() -> None:
    ras_answer = answer(
        errors="#0-0 (27a079b828ff1a75) ERROR\n  Asynchronous error on 1 rank\n"
        "  Rank 3 reported unhandled system error -- GPU 3 managed by process 9 on node 10.0.0.1\n\n"
    )
    assert ras_answer.communicators[0].members[0].error == "unhandled system error"


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


def test_a_monitor_is_read_in_both_forms() -> None:
    text = "OK\n[2026-11-22 08:30:15] PEER_DEAD: Process 14083 on node 10.21.0.4 managing GPU 2 \n"
    objects = 'OK\nOK\n{\n  "timestamp": "2026-11-22 08:30:15",\n  "group": "LIFECYCLE",\n  "event": "PEER_DEAD",\n'
    objects += (
        '  "peer": {\n    "host": "10.21.0.4",\n    "pid": 14083,\n    "cuda_devs": [2]\n  },\n  "details": ""\n}'
    )
    for form in (text, objects):
        (ras_answer,) = read_ras(form, "monitor")
        (event,) = ras_answer.events
        assert (event.what, event.process) == ("PEER_DEAD", RasProcess("10.21.0.4", 14083, "2"))
        assert event.time == 1795336215.0


def test_two_answers_of_one_second_that_say_the_same_are_one_snapshot() -> None:
    (one,) = read_ras(json.dumps(status(2), indent=2), "a.json")
    later = replace(one, source="c.json", time=(one.time or 0.0) + 5)
    assert in_order([later, one, replace(one, source="b.json")]) == (one, later)
