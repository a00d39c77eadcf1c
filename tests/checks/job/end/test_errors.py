"""JOB005: the first error, apart from its cascade."""

from dataclasses import replace

import numpy as np
import pytest

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.interface import quoted
from topodiag.checks.job.end.errors import FirstError
from topodiag.model.finding import Severity, Status
from topodiag.model.job import Communicator, Event

COMPLETION = "NET/IB: Got completion from peer 10.0.0.1<49872> with status=12 opcode=0 len=0 vendor err 129 hca mlx5_3"
CLOSED = "socketProgress: Connection closed by remote peer n1<51234>"


def open_init(world: Communicator) -> Communicator:
    return replace(world, completed=np.zeros_like(world.completed))


def port_error(rank: int = 9, **changes: object) -> Event:
    return jobs.event("ib completion", COMPLETION, "n1", rank=rank, details={"hca": "mlx5_3"}, **changes)


def closed(rank: int, **changes: object) -> Event:
    host = f"n{rank // 8}"
    return jobs.event("peer closed", CLOSED, host, rank=rank, secondary=True, **changes)


def test_the_completion_error_is_first_and_the_closed_connections_follow() -> None:
    events = [closed(rank, ts=90.0) for rank in range(8)] + [port_error(ts=100.0)]
    [finding] = FirstError().judge(jobs.job(events=events)).findings
    assert finding.severity is Severity.ERROR
    assert finding.where.ranks == (9,)
    assert finding.where.nics == ("mlx5_3",)
    assert finding.message.endswith("; 8 later errors on 8 ranks follow")
    assert "peer n0 (10.0.0.1)" in finding.observed


@examples("given", "wanted")
def test_the_first_error_of_a_job(given: jobs.Given, wanted: Wanted) -> None:
    texts = {"COMPLETION": COMPLETION, "REGISTER": COMPLETION.replace("status=12", "status=4")}
    events = [[kind, texts.get(text, text), *more] for kind, text, *more in given["events"]]
    assert shown(FirstError().judge(jobs.of_row({**given, "events": events})), wanted) == wanted


def test_with_consequences_only_the_peer_most_name_is_a_suspect() -> None:
    text = "socketProgress: Connection closed by remote peer 10.0.0.2<51234>"
    events = [jobs.event("peer closed", text, "n0", rank=rank, secondary=True) for rank in range(8)]
    expect(FirstError().judge(jobs.job(events=events)), confidence="LOW", nodes=("n1",), message="*8 of 8 reports*")


@examples("kind", "text", "place", "advice")
def test_the_advice_is_for_these_words_in_this_place(kind: str, text: str, place: str, advice: str) -> None:
    events = [jobs.event(kind, text, place=place), jobs.event("unwind", "transport.cc:1 -> 2", level="UNWIND")]
    [finding] = FirstError().judge(jobs.job(world=open_init, events=events)).findings
    assert advice in finding.fix[0]


def test_a_long_text_is_cut_between_words_so_that_no_number_is_left_half() -> None:
    text = "Watchdog caught collective operation timeout: " + "word " * 18 + "ran for 600021 milliseconds"
    expect(FirstError().judge(jobs.job(events=[jobs.event("cuda", text)])), message="*ran for ...")
    assert quoted("a  b\nc") == "a b c"
    assert len(quoted("x" * 500, 100)) == 100


@examples("text")
def test_a_warning_that_nccl_goes_on_after_is_never_the_first_error(text: str) -> None:
    went_on = jobs.event("other", text, pid=7, origin=jobs.origin(text, 3))
    unwind = jobs.event("unwind", "transport.cc:291 -> 2", level="UNWIND", secondary=True, pid=7)
    assert FirstError().judge(jobs.job(events=[went_on, unwind])).status is Status.CLEAN
    words = "Connect to 10.0.0.2<4000> failed : Network is unreachable"
    later = jobs.event("connect", words, pid=7, origin=jobs.origin(words, 9))
    [finding] = FirstError().judge(jobs.job(events=[went_on, later, unwind])).findings
    assert words in finding.message


def test_what_a_process_printed_after_its_own_error_did_not_cause_it() -> None:
    first = jobs.event("ib completion", COMPLETION, pid=5, origin=jobs.origin(COMPLETION, 10))
    fallout = "Cuda failure 'an illegal memory access was encountered'"
    after = jobs.event("cuda", fallout, pid=5, origin=jobs.origin(fallout, 30))
    expect(FirstError().judge(jobs.job(events=[first, after])), message="*Got completion*")
    elsewhere = jobs.event("cuda", fallout, "n1", pid=5, origin=jobs.origin(fallout, 30))
    [finding] = FirstError().judge(jobs.job(events=[first, elsewhere])).findings
    assert fallout in finding.message


def test_nvlink_sharp_that_fails_while_the_job_goes_on_is_a_warning() -> None:
    failed = [jobs.event("cuda", "Cuda failure 1 'invalid argument'", rank=rank, place="transport/nvls.cc:621")
              for rank in (0, 1)]  # fmt: skip
    [finding] = FirstError().judge(jobs.job(events=failed)).findings
    assert finding.severity is Severity.WARNING
    assert finding.message.startswith("NVLink SHARP: rank 0 on n0: Cuda failure 1")
    assert finding.message.endswith("init completed without it")
    event = jobs.event("other", "NCCL error: unhandled cuda error", "", level="APP", secondary=True)
    for job in (jobs.job(events=[*failed, event]), jobs.job(world=open_init, events=failed)):
        assert FirstError().judge(job).findings[0].severity is Severity.ERROR


@pytest.mark.parametrize("ts", [None, 100.0])
def test_a_warning_that_its_process_survived_is_not_the_first_error_beside_one_that_ended_a_process(
    ts: float | None,
) -> None:
    later = None if ts is None else ts + 7200
    warned = jobs.event("plugin", "NET/OFI aws-ofi-nccl initialization failed", "n0", pid=4, ts=ts)
    expect(FirstError().judge(jobs.job(events=[warned, port_error(pid=5, ts=later)])), message="*Got completion*")
    unwind = jobs.event("unwind", "init.cc:1303 -> 2", "n0", pid=4, level="UNWIND", secondary=True)
    expect(FirstError().judge(jobs.job(events=[warned, unwind, port_error(pid=5, ts=later)])), message="*aws-ofi-nccl*")
