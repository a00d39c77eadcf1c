"""JOB006 by what torch's watchdog says of each rank, and by the words of frameworks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import pasted
from tests.checks import jobs
from tests.checks.wanted import Wanted, shown
from tests.tables import examples, parts
from topodiag.checks.job.hang.check import RankBehind
from topodiag.evidence.nccl_log.rebuild.events import classify, rank_of
from topodiag.model.finding import Finding, Severity
from topodiag.model.job import Event

OLD = (
    "[PG 0 Rank {rank}] Timeout at NCCL work: {at}, last enqueued NCCL work: {work}, last completed NCCL work: {done}."
)
NEW = (
    "[PG ID {id} PG GUID {guid} Rank {rank}]  failure detected by watchdog at work sequence id: {at} PG status: last"
    " enqueued work: {work}, last completed work: {done}"
)


def told(rank: int, work: int, done: int, form: str = OLD, **names: object) -> Event:
    text = form.format(**{"rank": rank, "at": done + 1, "work": work, "done": done, "id": 0, "guid": "0", **names})
    kind, secondary, details = classify("APP", text)
    return jobs.event(kind, text, "", rank=rank, level="APP", secondary=secondary, details=dict(details))


def found(events: list[Event]) -> list[Finding]:
    quiet = jobs.job(1, events=events)
    return [finding for finding in RankBehind().judge(quiet).findings if "work" in finding.message]


@examples("reports", "form", "names", "sends", "findings", "fix")
def test_who_is_behind_by_the_reports_of_the_ranks(
    *,
    reports: dict[str, list[int]],
    form: str | None,
    names: dict[str, Any] | None,
    sends: bool | None,
    findings: list[dict[str, Any]],
    fix: str | None,
) -> None:
    forms = {"old": OLD, "new": NEW}
    events = [told(int(rank), *counts, forms[form or "old"], **names or {}) for rank, counts in reports.items()]
    if sends:
        details = {"op": "RECV", "group": "0"}
        events.append(jobs.event("watchdog", "", "", rank=1, level="APP", details=details))
    made = found(events)
    assert parts(made, findings) == findings
    assert fix is None or fix in made[0].fix[0]


def test_the_label_names_the_rank_where_torch_names_that_of_a_group() -> None:
    assert rank_of("9", "[Rank 1] Watchdog caught collective operation timeout") == 9
    assert rank_of("", "[Rank 1] Watchdog caught collective operation timeout") == 1
    assert rank_of("default1", "Process group watchdog") == -1


def caught(rank: int, seq: int, op: str = "BROADCAST") -> Event:
    details = {"seq": str(seq), "op": op}
    return jobs.event("watchdog", "Watchdog caught", "", rank=rank, level="APP", details=details)


def test_the_rank_that_did_not_time_out_is_named_without_the_lines_of_the_last_works() -> None:
    quiet = jobs.job(1, events=[caught(rank, 4) for rank in range(1, 8)])
    [finding] = RankBehind().judge(quiet).findings
    assert (finding.severity, finding.where.ranks) == (Severity.ERROR, (0,))
    assert finding.message.startswith("7 ranks waited in BROADCAST number 4 until their watchdog; rank 0 reported no")
    for events in ([caught(rank, 4 + (rank > 3)) for rank in range(1, 8)], [caught(r, 4, "RECV") for r in range(1, 8)]):
        assert found(events) == []


def test_a_rank_that_reported_otherwise_is_not_silent() -> None:
    spoke = jobs.event("watchdog", "Process group watchdog thread terminated", "", rank=0, level="APP", secondary=True)
    assert found([*(caught(rank, 4) for rank in range(1, 8)), spoke]) == []


TIMED_OUT = (
    "[Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLGATHER, Timeout(ms)=120000)"
    " ran for 120007 milliseconds"
)


@examples("ranks", "size", "says", "fix")
def test_who_is_behind_is_named_only_where_a_rank_reports_no_timeout(
    ranks: int, size: int, says: str, fix: str
) -> None:
    events = []
    for rank in range(ranks):
        kind, secondary, details = classify("APP", text := TIMED_OUT.format(rank))
        events.append(jobs.event(kind, text, "", rank=rank, level="APP", secondary=secondary, details=dict(details)))
    job = replace(jobs.job(1, events=events), world_size=size)
    [finding] = [finding for finding in RankBehind().judge(job).findings if "ALLGATHER" in finding.message]
    assert finding.message.startswith(says)
    assert fix in finding.fix[0]
    assert ("who did not come" in finding.message) == (ranks not in (size, 6))


MONITOR = (
    "[rank3]:[E301 10:30:00.000 ProcessGroupNCCL.cpp:1598] [PG ID 0 PG GUID 0(default_pg) Rank 3] Heartbeat monitor"
    " timed out! Process will be terminated after dumping debug info.\n"
    "[rank3]:[F301 10:38:00.000 ProcessGroupNCCL.cpp:1450] [PG ID 0 PG GUID 0(default_pg) Rank 3] Terminating the"
    " process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.\n"
)
SUMMARY = "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 3)\n  exitcode  : {} (pid: 4711)\n"
LAUNCHER = "srun: error: n1: task 0: Exited with exit code 1\n"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        pytest.param(MONITOR, "hung", id="alone"),
        pytest.param(MONITOR + SUMMARY.format(-6) + LAUNCHER, "hung", id="and its launcher says that it aborted"),
        pytest.param(MONITOR + SUMMARY.format(-9) + LAUNCHER, "failed", id="another signal"),
        pytest.param(MONITOR + LAUNCHER, "failed", id="an error code alone"),
        pytest.param("[rank1]: KeyError: 'x'\n" + MONITOR + SUMMARY.format(-6), "failed", id="an exception"),
    ],
)
def test_a_job_of_which_nothing_is_known_but_that_its_ranks_waited_hung(text: str, state: str, tmp_path: Path) -> None:
    assert pasted.said(tmp_path, "step 100\n" + text)["verdict"]["state"] == state


# --- JOB006 by the words of frameworks: one line is the verdict


WAIT = (
    "[Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1,"
    " NumelOut=1, Timeout(ms)=1200000) ran for 1200027 milliseconds before timing out."
)


def worded(text: str, level: str = "APP", rank: int = -1) -> Event:
    kind, secondary, details = classify(level, text)
    return jobs.event(kind, text, "", level=level, secondary=secondary, details=dict(details), rank=rank)


def of_words(*events: Event) -> list[Finding]:
    return list(RankBehind().judge(jobs.job(2, events=list(events), communicators=())).findings)


@examples("lines", "wanted")
def test_words_of_programs_that_wait(lines: list[tuple[str, int, str]], wanted: Wanted) -> None:
    """Each line with its level and its rank."""
    events = [worded(text, level, rank) for level, rank, text in lines]
    assert shown(RankBehind().judge(jobs.job(2, events=events)), wanted) == wanted


def test_a_watchdog_of_old_torch_without_a_number_is_read() -> None:
    text = WAIT.replace("SeqNum=12, ", "")
    assert classify("APP", text)[2][:1] == (("op", "ALLREDUCE"),)
    assert len(of_words(worded(text, rank=7))) == 1


def test_sends_and_receives_that_wait_name_nobody() -> None:
    assert of_words(worded(WAIT.replace("ALLREDUCE", "RECV"), rank=7)) == []
