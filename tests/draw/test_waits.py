"""A hang: bars from the start of each wait, and the missing rank blank."""

from dataclasses import replace

from tests.draw.jobs import ringed
from tests.draw.shown import texts
from topodiag.draw.waits import draw_waits
from topodiag.model.job import FlightRecord, Job

NAN = float("nan")


def hung(ranks: int, missing: int, *, timed: bool = True, state: str = "started", group: int = 0) -> Job:
    members = {"0": tuple(range(group or ranks))}
    records = []
    for rank in range(ranks):
        last = [] if rank == missing else [("0", 42, "all_reduce", state)]
        entries = (("0", 41, "all_reduce", "completed"), *last)
        times = tuple((100.0 + rank / 10 + at) if timed else NAN for at in range(len(entries)))
        records.append(FlightRecord(rank, entries, members, {"0": "tp"}, created_s=times))
    return replace(ringed(["n1"], ranks), flight=tuple(records))


def test_the_missing_rank_is_blank_and_the_others_have_bars() -> None:
    svg = draw_waits(hung(4, 2))
    assert svg.count('class="absent"') == 1
    assert svg.count('class="netbox"') == 3
    shown = texts(svg)
    assert "Who waits in all_reduce number 42" in shown
    assert "never entered; its last is number 41" in shown
    assert any(text.endswith("3 ranks wait, 1 rank never entered: 2") for text in shown)
    assert "rank 2 n1" in shown


def test_of_a_thousand_ranks_the_first_the_last_and_the_missing_are_rows() -> None:
    svg = draw_waits(hung(1000, 517))
    shown = texts(svg)
    assert "988 more" in shown
    assert "rank 517 n1" in shown
    assert len(svg) < 12_000


def test_dumps_without_times_still_say_who_is_missing() -> None:
    shown = texts(draw_waits(hung(4, 1, timed=False)))
    assert "rank 1 n1" in shown
    assert "still waiting" not in shown


def test_ranks_without_a_dump_are_counted() -> None:
    assert any("4 ranks left no dump" in text for text in texts(draw_waits(hung(4, 1, group=8))))


def test_no_picture_where_nobody_waits() -> None:
    assert draw_waits(hung(4, -1)) == ""
    assert draw_waits(hung(4, 1, state="completed")) == ""
    assert draw_waits(ringed(["n1"])) == ""
