"""What happened when: one axis, each clock's zone and skew from what must coincide, waits from their start."""

from dataclasses import replace

import pytest

from tests.checks import jobs
from tests.checks.nodes import read
from tests.verdict.machines import NOON, capture, inited, kernel_log, xid
from topodiag.model.identity import Identity
from topodiag.model.job import FlightRecord
from topodiag.model.provenance import Origin
from topodiag.model.result import Case
from topodiag.model.timeline import Clock, Timeline
from topodiag.verdict.timeline import MOST_MOMENTS, timeline


def made(**parts: object) -> Timeline:
    return timeline(Case(**parts), Identity())  # type: ignore[arg-type]


def clock(line: Timeline, source: str, host: str) -> Clock:
    (times,) = [times for times in line.clocks if (times.source, times.host) == (source, host)]
    return times


def failing(ahead_s: float = 0.0) -> Timeline:
    """n0 fails a minute before n1; the clock of n1 is ahead."""
    events = [
        jobs.event("ib async", "port error", "n0", ts=NOON + 60, rank=0),
        jobs.event("ib completion", "got completion with error 12", "n1", ts=NOON + 120 + ahead_s, rank=8),
    ]
    return made(jobs=(jobs.job(events=events, world=inited(NOON, NOON + ahead_s)),))


@pytest.mark.parametrize("ahead_s", [0.0, 600.0, -600.0])
def test_a_clock_that_is_ten_minutes_off_changes_no_order(ahead_s: float) -> None:
    line = failing(ahead_s)
    shown = [moment.what for moment in line.moments if moment.rank >= 0]
    assert shown == ["port error", "got completion with error 12"]
    first, second = [moment.time or 0.0 for moment in line.moments if moment.rank >= 0]
    assert second - first == 60


def test_the_skew_of_a_clock_is_said_with_its_uncertainty_and_what_it_rests_on() -> None:
    times = clock(failing(600.0), "NCCL log", "n1")
    assert (times.skew_s, times.within_s) == (600.0, 2.0)
    assert "Init COMPLETE" in times.how


def test_a_wait_counts_from_its_start_not_from_when_the_watchdog_printed_it() -> None:
    late = {"ran_ms": "600000", "seq": "7", "op": "ALLREDUCE"}
    early = {"ran_ms": "630000", "seq": "7", "op": "ALLREDUCE"}
    events = [
        jobs.event("watchdog", "Watchdog caught", "n0", ts=NOON + 700, rank=0, details=late),
        jobs.event("watchdog", "Watchdog caught", "n1", ts=NOON + 710, rank=8, details=early),
    ]
    line = made(jobs=(jobs.job(events=events),))
    assert [(moment.rank, moment.time) for moment in line.moments] == [(8, NOON + 80), (0, NOON + 100)]
    assert line.moments[0].what == "waits in ALLREDUCE number 7, until the watchdog gives up after 630 s"


def test_a_zone_comes_from_one_event_told_by_two_clocks_rounded_to_a_quarter_of_an_hour() -> None:
    node = capture("n0", events=(xid(359_000.0),))  # booted 100 h before 2025-10-09T09:00:00Z
    boot = 1_760_000_400.0 - 360_000.0
    event = jobs.event("cuda", "unspecified launch failure", "n0", ts=boot + 359_000 + 5.5 * 3600 + 2, rank=0)
    line = made(nodes=(node,), jobs=(jobs.job(events=[event]),))
    assert clock(line, "NCCL log", "n0").zone == "+05:30"
    assert [moment.what[:10] for moment in line.moments if moment.time and moment.time > boot + 1] == [
        "NVRM: Xid ", "unspecifie", "the node i",
    ]  # fmt: skip


def test_two_events_that_are_not_whole_quarters_apart_show_no_zone() -> None:
    node = capture("n0", events=(xid(359_000.0),))
    event = jobs.event("cuda", "launch failure", "n0", ts=1_760_000_400.0 - 1000 + 700, rank=0)
    assert clock(made(nodes=(node,), jobs=(jobs.job(events=[event]),)), "NCCL log", "n0").zone == ""


def test_seconds_since_boot_are_counted_from_the_boot_that_the_capture_shows() -> None:
    line = made(nodes=(capture("n0", events=(xid(359_940.0),)),))
    (lost,) = [moment for moment in line.moments if moment.what.startswith("NVRM")]
    assert lost.time == 1_760_000_400.0 - 60.0
    assert lost.stamp == "359940 s after boot"


def test_an_event_without_a_time_stands_last_and_keeps_what_its_source_wrote() -> None:
    line = made(nodes=(kernel_log("n0", xid(12.5)), capture("n1")))
    assert (line.moments[-1].time, line.moments[-1].stamp) == (None, "12.5 s after boot")


def test_a_time_with_its_zone_needs_none_guessed() -> None:
    event = jobs.event("other", "x", "n0", ts=NOON, origin=Origin("a", 1, "2025-10-09T08:53:20.000000Z n0:1:1 x"))
    assert clock(made(jobs=(jobs.job(events=[event]),)), "NCCL log", "n0").zone == "+00:00"


def test_what_nothing_ties_is_said_so() -> None:
    event = jobs.event("other", "x", "n0", ts=NOON)
    times = clock(made(jobs=(jobs.job(events=[event]),)), "NCCL log", "n0")
    assert (times.zone, times.skew_s, times.how) == ("", None, "no event links it to other clocks")


def test_the_flight_recorder_tells_when_a_rank_enqueued_what_did_not_complete() -> None:
    entries = (("0", 6, "all_reduce", "completed"), ("0", 7, "all_reduce", "started"))
    record = FlightRecord(3, entries, descriptions={"0": "default_pg"}, created_s=(NOON, NOON + 5))
    line = made(jobs=(replace(jobs.job(), flight=(record,)),))
    (moment,) = line.moments
    assert (moment.rank, moment.host, moment.time) == (3, "n0", NOON + 5)
    assert moment.what == "enqueues all_reduce number 7 of default_pg, which does not complete"


def test_bursts_are_one_moment_with_their_number() -> None:
    events = tuple(xid(359_000.0 + at, 13, text="NVRM: Xid 13") for at in (0, 1, 2, 3, 4, 900))
    line = made(nodes=(capture("n0", events=events),))
    assert [moment.count for moment in line.moments if moment.what == "NVRM: Xid 13"] == [5, 1]


def test_ranks_of_a_host_that_say_the_same_are_one_moment_and_two_gpus_are_two() -> None:
    events = [
        jobs.event("ib completion", f"completion from peer 10.0.0.{at}<5{at}>", ts=NOON, rank=at) for at in range(8)
    ]
    line = made(jobs=(jobs.job(events=events),), nodes=(kernel_log("n0", xid(NOON), xid(NOON, bus="0000:20:00.0")),))
    assert sorted(moment.count for moment in line.moments) == [1, 1, 8]


def test_the_moments_kept_are_bounded_and_hold_each_kind_once() -> None:
    events = [jobs.event("other", "noise", ts=NOON + 200 * at, rank=0) for at in range(MOST_MOMENTS + 500)]
    events.append(jobs.event("cuda", "the fault", "n1", ts=NOON + 1e6, rank=9))
    line = made(jobs=(jobs.job(events=events),))
    assert len(line.moments) == MOST_MOMENTS
    assert "the fault" in {moment.what for moment in line.moments}


@pytest.mark.parametrize("ts", [float("nan"), float("inf"), -5.0, 1e18])
def test_a_time_that_no_calendar_has_is_none(ts: float) -> None:
    line = made(jobs=(jobs.job(events=[jobs.event("other", "x", ts=ts)]),), nodes=(capture("n0", time=read("never")),))
    assert [moment.time for moment in line.moments] == [None]


def test_the_order_of_the_evidence_changes_no_timeline() -> None:
    events = [jobs.event("other", f"line {at % 3}", ts=NOON + at % 4, rank=at) for at in range(12)]
    one, other = (jobs.job(events=events) for events in (events, events[::-1]))
    assert [(m.time, m.what, m.count) for m in made(jobs=(one,)).moments] == [
        (m.time, m.what, m.count) for m in made(jobs=(other,)).moments
    ]
