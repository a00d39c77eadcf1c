"""JOB005: the first error, apart from its cascade."""

from __future__ import annotations

import jobs
import pytest

from topodiag.checks.job_errors import FirstError
from topodiag.checks.job_text import quoted
from topodiag.model.finding import Confidence, Severity, Status
from topodiag.model.job import Event

COMPLETION = "NET/IB: Got completion from peer 10.0.0.1<49872> with status=12 opcode=0 len=0 vendor err 129 hca mlx5_3"
CLOSED = "socketProgress: Connection closed by remote peer n1<51234>"


def port_error(rank: int = 9, **changes: object) -> Event:
    return jobs.event("ib completion", COMPLETION, "n1", rank=rank, details={"hca": "mlx5_3"}, **changes)


def closed(rank: int, **changes: object) -> Event:
    host = f"n{rank // 8}"
    return jobs.event("peer closed", CLOSED, host, rank=rank, secondary=True, **changes)


def test_a_job_without_errors_is_clean() -> None:
    assert FirstError().judge(jobs.job()).status is Status.CLEAN


def test_the_completion_error_is_first_and_the_closed_connections_follow() -> None:
    events = [closed(rank, ts=90.0) for rank in range(8)] + [port_error(ts=100.0)]
    [finding] = FirstError().judge(jobs.job(events=events)).findings
    assert finding.severity is Severity.ERROR
    assert finding.where.ranks == (9,)
    assert finding.where.nics == ("mlx5_3",)
    assert finding.message.endswith("; 8 later errors on 8 ranks follow")
    assert "peer n0 (10.0.0.1)" in finding.observed


def test_by_time_the_earliest_is_first() -> None:
    events = [port_error(ts=105.0), jobs.event("cuda", "Cuda failure 'an illegal access'", "n0", rank=2, ts=100.0)]
    [finding] = FirstError().judge(jobs.job(events=events)).findings
    assert finding.where.ranks == (2,)
    assert finding.confidence is Confidence.HIGH


def test_within_a_second_the_order_is_that_of_causes_and_the_clocks_are_named() -> None:
    events = [port_error(ts=100.0), jobs.event("cuda", "Cuda failure 'an illegal access'", "n0", rank=2, ts=100.5)]
    [finding] = FirstError().judge(jobs.job(events=events)).findings
    assert finding.where.ranks == (2,)
    assert "clocks" in finding.observed
    assert finding.confidence is Confidence.MEDIUM


def test_without_times_the_cause_comes_before_its_effects() -> None:
    events = [jobs.event("connect", "connect to 10.0.0.2<1> failed", "n0", rank=0), port_error()]
    [finding] = FirstError().judge(jobs.job(events=events)).findings
    assert finding.where.ranks == (9,)


def test_a_watchdog_yields_to_any_cause() -> None:
    events = [jobs.event("watchdog", "Watchdog caught collective operation timeout", rank=0, ts=1.0, level="APP"),
              port_error(ts=2.0)]  # fmt: skip
    assert FirstError().judge(jobs.job(events=events)).findings[0].where.ranks == (9,)


def test_with_consequences_only_the_peer_most_name_is_a_suspect() -> None:
    text = "socketProgress: Connection closed by remote peer 10.0.0.2<51234>"
    events = [jobs.event("peer closed", text, "n0", rank=rank, secondary=True) for rank in range(8)]
    [finding] = FirstError().judge(jobs.job(events=events)).findings
    assert finding.confidence is Confidence.LOW
    assert finding.where.nodes == ("n1",)
    assert "8 of 8 reports" in finding.message


def test_warnings_of_a_job_that_went_on_are_no_error() -> None:
    events = [jobs.event("plugin", "Failed to open libfoo"), jobs.event("ib async", "GID table change", "n1")]
    assert FirstError().judge(jobs.job(events=events)).status is Status.CLEAN


def test_unwinding_is_evidence_and_no_error_of_its_own() -> None:
    unwind = jobs.event("unwind", "init.cc:160 -> 5", level="UNWIND", secondary=True)
    assert FirstError().judge(jobs.job(events=[unwind])).status is Status.UNKNOWN
    [finding] = FirstError().judge(jobs.job(events=[unwind, jobs.event("other", "no room")])).findings
    assert "no room" in finding.message
    assert "later" not in finding.message


def test_a_cause_that_only_the_application_repeats_is_the_first_error() -> None:
    said = [
        jobs.event("other", "ncclInvalidUsage: This usually reflects invalid usage", "", level="APP", secondary=True),
        jobs.event("duplicate gpu", "Duplicate GPU detected : rank 3 and rank 0", "", level="APP", secondary=True),
    ]
    [finding] = FirstError().judge(jobs.job(hosts=1, events=said)).findings
    assert finding.message.startswith("first error: n0: Duplicate GPU detected")
    assert finding.confidence is Confidence.MEDIUM
    assert "as the application repeats it" in finding.observed
    [one] = FirstError().judge(jobs.job(events=said[:1])).findings
    assert one.message == "1 error that follows from one not in the log"


@pytest.mark.parametrize(
    ("kind", "text", "place", "advice"),
    [
        ("connect", "Call to ibv_modify_qp failed with 110 timed out", "ibvwrap.cc:262", "NCCL_IB_GID_INDEX"),
        ("connect", "Net : Connect to 10.0.0.2<4000> failed : No route to host", "socket.h:9", "NCCL_SOCKET_IFNAME"),
        ("mismatch", "socketFinalizeAccept: wrong type 4 != 3", "misc/socket.cc:441", "one network"),
        ("mismatch", "Mismatched collective detected", "init.cc:1247", "JOB006"),
        ("memory", "Error: failed to extend /dev/shm/nccl-WU88OE to 9637892 bytes", "shmutils.cc:88", "--shm-size"),
        ("memory", "Failed to CUDA calloc async 16777216 bytes", "alloc.h:9", "fewer channels"),
        ("cuda", "Cuda failure 1 'invalid argument'", "transport/nvls.cc:244", "Fabric Manager"),
        ("cuda", "Cuda failure 'unspecified launch failure'", "enqueue.cc:1", "Xid"),
        ("version", "CUDA Driver version found is 11040", "init.cc:1", "nvidia-smi"),
    ],
)
def test_the_advice_is_for_these_words_in_this_place(kind: str, text: str, place: str, advice: str) -> None:
    [finding] = FirstError().judge(jobs.job(events=[jobs.event(kind, text, place=place)])).findings
    assert advice in finding.fix[0]


def test_of_watchdogs_the_one_of_the_lowest_work_is_first_and_its_rank_is_placed() -> None:
    events = [
        jobs.event("watchdog", "Watchdog caught", "", rank=rank, level="APP", details={"seq": str(seq)})
        for rank, seq in ((4, 7), (9, 5), (0, 56))
    ]
    [finding] = FirstError().judge(jobs.job(events=events)).findings
    assert finding.message.startswith("first error: rank 9 on n1: ")
    assert finding.where.nodes == ("n1",)


def test_a_long_text_is_cut_between_words_so_that_no_number_is_left_half() -> None:
    text = "Watchdog caught collective operation timeout: " + "word " * 18 + "ran for 600021 milliseconds"
    [finding] = FirstError().judge(jobs.job(events=[jobs.event("cuda", text)])).findings
    assert finding.message.endswith("ran for ...")
    assert quoted("a  b\nc") == "a b c"
    assert len(quoted("x" * 500, 100)) == 100
