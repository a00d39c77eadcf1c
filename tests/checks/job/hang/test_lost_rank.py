"""A rank that is gone without a word: dead where its connections closed, not where it left, stopped or had a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evidence.live.test_ras import status
from tests.tables import texts
from topodiag.api import diagnose

TEXTS = texts(__file__)
INIT = TEXTS["init"]
CLOSED = (
    "\n[2026-03-01 10:41:27] n{r}:{p}:{q} [0] misc/socket.cc:72 NCCL WARN socketProgress: Connection closed by remote"
    " peer\nn{r}:{p}:{q} [0] NCCL INFO misc/socket.cc:845 -> 6\n"
)
LOST = TEXTS["lost"]
TIMED_OUT = (
    "[rank{r}]:[E301 10:41:27.769 ProcessGroupNCCL.cpp:688] [Rank {r}] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=33, OpType=ALLREDUCE, NumelIn=1059850, NumelOut=1059850, Timeout(ms)=14000) ran for 14040"
    " milliseconds before timing out.\n"
)
DETECTED = (
    "[rank{r}]:[E301 10:41:27.770 ProcessGroupNCCL.cpp:2303] [PG ID 0 PG GUID 0(default_pg) Rank {r}]  failure detected"
    " by watchdog at work sequence id: 33 PG status: last enqueued work: 34, last completed work: 32\n"
)
ENDS_WELL = (
    "[rank{r}]:[W301 10:41:26.858 ProcessGroupNCCL.cpp:1575] Warning: WARNING: destroy_process_group() was not called"
    " before program exit, which can leak resources. (function operator())\n"
)


def text(rank: int, *parts: str, size: int = 4) -> str:
    return "".join(parts).format(r=rank, p=4000 + rank, q=4700 + rank, size=size)


def job(silent: str = "", size: int = 4, others: str = CLOSED + LOST + DETECTED, head: str = INIT) -> dict[str, str]:
    """Logs of a job of which rank 2 prints `silent` alone."""
    return {
        f"rank{rank}.log": text(rank, head, silent if rank == 2 else others, size=size) for rank in range(size)
    }  # fmt: skip


def told(folder: Path, logs: dict[str, str]) -> list[dict[str, Any]]:
    for name, content in logs.items():
        (folder / name).write_text(content)
    document = json.loads(diagnose(str(folder)).to_json())
    return [finding for finding in document["findings"] if finding["severity"] == "error"]


def test_a_rank_whose_log_just_ends_is_dead_and_the_waits_follow_from_it(tmp_path: Path) -> None:
    first, *rest = told(tmp_path, job())
    assert (first["id"], first["where"]["ranks"], first["confidence"]) == ("JOB009", [2], "medium")
    assert first["message"] == "rank 2 on n2 ended without a word: the others saw its connections close"
    assert all("lost a process that ended" in str(record["follows_from"]) for record in rest)


def test_so_is_one_of_which_there_is_no_line_at_all(tmp_path: Path) -> None:
    plain = "2026-03-01 10:41:10 [rank{r}] process group ready: world size 3\n"
    logs = job(size=4, head=plain)
    del logs["rank2.log"]
    first, *_ = told(tmp_path, logs)
    assert (first["id"], first["where"]["ranks"]) == ("JOB009", [2])


def test_the_launchers_line_on_its_signal_is_its_end(tmp_path: Path) -> None:
    line = "srun: error: n2: task 2: Killed\n"
    first, *_ = told(tmp_path, {**job(), "slurm.out": line})
    assert (first["id"], first["where"]["ranks"]) == ("JOB009", [2])


def test_a_rank_that_came_to_its_end_left_and_did_not_die(tmp_path: Path) -> None:
    first, *_ = told(tmp_path, job(ENDS_WELL))
    assert (first["id"], first["where"]["ranks"]) == ("JOB006", [2])
    assert "came to the end of its program while the others went on" in first["message"]


RAS = TEXTS["ras"]


def test_of_one_that_ras_does_not_reach_closed_connections_say_that_it_is_dead(tmp_path: Path) -> None:
    first, *rest = told(tmp_path, {**job(), "ras.txt": RAS})
    assert (first["id"], first["where"]["ranks"]) == ("JOB009", [2])
    assert "no answer to RAS" in first["observed"]
    assert all(record["follows_from"] for record in rest)


@pytest.mark.parametrize("ras", ["", RAS])
def test_one_that_is_stopped_closes_nothing_before_the_watchdogs_of_the_others(tmp_path: Path, ras: str) -> None:
    logs = job(others=TIMED_OUT + DETECTED + CLOSED)
    answer = told(tmp_path, {**logs, "ras.txt": ras} if ras else logs)
    assert "JOB009" not in {record["id"] for record in answer}


@pytest.mark.parametrize(
    ("why", "logs"),
    [
        ("all report it", job(CLOSED + LOST + DETECTED)),
        ("an error stands for itself", job(others=CLOSED + LOST + DETECTED + "n{r}:{p}:{q} [0] transport/net_ib.cc:1295"
         " NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4711> with status=12 opcode=0 len=0 vendor err 129\n")),
        ("no logs", {name: job(size=8)[name] for name in ("rank0.log", "rank1.log", "rank4.log")}),
        ("nothing closed", job(others=DETECTED)),
        ("it had a word", job("[rank2]: Traceback (most recent call last):\n[rank2]:   File \"a.py\", line 5, in x\n"
         "[rank2]: RuntimeError: NCCL error: unhandled system error\n")),
    ],
)  # fmt: skip
def test_where_it_does_not_show_who_is_gone_nobody_is(tmp_path: Path, why: str, logs: dict[str, str]) -> None:
    assert not [record for record in told(tmp_path, logs) if "without a word" in record["message"]], why


def test_a_job_that_ends_well_may_see_connections_close(tmp_path: Path) -> None:
    bye = "n{r}:{p}:{p} [0] NCCL INFO comm 0x{r}1 rank {r} nranks 4 cudaDev 0 busId 60 - Destroy COMPLETE\n"
    logs = {name: content + text(int(name[4]), bye) for name, content in job(others="").items()}
    logs["rank1.log"] += text(1, CLOSED)
    assert "JOB009" not in {record["id"] for record in told(tmp_path, logs)}


def test_so_may_one_that_prints_warnings_alone(tmp_path: Path) -> None:
    assert "JOB009" not in {record["id"] for record in told(tmp_path, job(others=CLOSED))}


def test_reports_that_name_another_peer_accuse_no_silent_rank(tmp_path: Path) -> None:
    where = "n{r}:{p}:{p} [0] NCCL INFO Bootstrap: Using eth0:10.0.0.{r}<0>\n"
    named = (
        "\n[2026-03-01 10:41:27] n{r}:{p}:{q} [0] misc/socket.cc:72 NCCL WARN socketProgress: Connection closed by"
        " remote peer 10.0.0.{peer}<41234>\n"
    )
    for name, peer, found in (("a", "2", True), ("b", "1", False)):
        (tmp_path / name).mkdir()
        document = job(others=named.replace("{peer}", peer) + LOST + DETECTED, head=INIT + where)
        assert ("JOB009" in {record["id"] for record in told(tmp_path / name, document)}) is found


BEHIND = (
    "[rank{r}]:[E301 10:41:27.770 ProcessGroupNCCL.cpp:2303] [PG ID 0 PG GUID 0(default_pg) Rank {r}]  failure detected"
    " by watchdog at work sequence id: 32 PG status: last enqueued work: 34, last completed work: 31\n"
)


@pytest.mark.parametrize(
    ("of_it", "words"),
    [
        (CLOSED + LOST + BEHIND, "rank 3 lost a peer in work 32"),
        (TIMED_OUT.replace("=33", "=32") + BEHIND + CLOSED, "rank 3 stopped at work 32"),
    ],
)
def test_a_rank_that_lost_a_peer_is_not_behind_by_its_own_network(tmp_path: Path, of_it: str, words: str) -> None:
    logs = {**job(others=TIMED_OUT + DETECTED), "rank3.log": text(3, INIT, of_it)}
    records = [record for record in told(tmp_path, logs) if record["id"] == "JOB006"]
    assert [record["message"].startswith(words) for record in records] == [True]
    assert ("its data does not arrive" in records[0]["fix"][0]) is ("stopped" in words)
    assert ("first rank 2" in records[0]["fix"][0]) is ("lost" in words)


BYE = "n{r}:{p}:{p} [0] NCCL INFO comm 0x{r}1 rank {r} nranks {size} cudaDev 0 busId 60 - Destroy COMPLETE\n"


@pytest.mark.parametrize("ras", ["", RAS])
def test_a_rank_that_tore_its_communicator_down_left_whoever_timed_out_later(tmp_path: Path, ras: str) -> None:
    logs = {**job(BYE), "rank0.log": text(0, INIT, TIMED_OUT.replace("=33", "=34"))}
    first, *rest = told(tmp_path, {**logs, "ras.txt": ras} if ras else logs)
    assert (first["id"], first["where"]["ranks"]) == ("JOB006", [2])
    assert "came to the end of its program" in first["message"]
    assert all(record["follows_from"] for record in rest)


def test_answers_of_ras_alone_show_a_rank_that_is_dead(tmp_path: Path) -> None:
    document: Any = status(4, missing=2)
    for member in document["communicators"][0]["ranks"]:
        member["status"]["async_error"] = 6 if member["rank"] in (1, 3) else 0
    first, *_ = told(tmp_path, {"answer.json": json.dumps(document)})
    assert (first["id"], first["where"]["ranks"]) == ("JOB009", [2])


def test_answers_of_ras_without_an_error_leave_open_whether_a_rank_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(json.dumps(status(4, missing=2)))
    document = json.loads(diagnose(str(tmp_path)).to_json())
    assert [(finding["id"], finding["where"]["ranks"]) for finding in document["findings"]] == [("JOB006", [2])]


def test_so_does_one_answer_in_text(tmp_path: Path) -> None:
    errors = (
        "#0-0 (77) ERROR\n  Asynchronous errors on 2 ranks\n  2 ranks reported Remote process error\n"
        "  Rank 1 -- GPU 0 managed by process 4001 on node n1\n  Rank 3 -- GPU 0 managed by process 4003 on node n3\n\n"
    )
    text_of_ras = RAS.replace("INCOMPLETE\n\nErrors", "INCOMPLETE,ERROR\n\nErrors").replace(
        "Warnings\n", errors + "Warnings\n"
    )
    first, *_ = told(tmp_path, {"ras.txt": text_of_ras})
    assert (first["id"], first["where"]["ranks"]) == ("JOB009", [2])
