"""Events in lanes by host: the first is marked, clocks have bands, long silences are cut out."""

from tests.draw.shown import texts
from topodiag.draw.timeline import MOST_LANES, draw_timeline
from topodiag.model.timeline import Moment

T0 = 1772426840.0


def moment(after: float, what: str = "an event", host: str = "n1", within: float | None = None) -> Moment:
    return Moment(T0 + after, what, host, within_s=within)


def test_each_host_has_a_lane_and_the_first_event_a_mark() -> None:
    svg = draw_timeline([moment(5, "transport retries exceeded", "n2"), moment(0, "Link down", "n1")])
    shown = texts(svg)
    assert shown.count("first") == 1
    assert svg.count('class="outline"') == 1
    assert {"n1", "n2", "Link down", "transport retries exceeded"} <= set(shown)
    assert "2 events on 2 hosts; the first at 2026-03-02 04:47:20" in shown


def test_a_clock_that_can_be_off_has_a_band_that_says_so() -> None:
    svg = draw_timeline([moment(0, within=2.0), moment(10)])
    assert svg.count('class="band"') == 1
    assert any("inside it the order is not known" in text for text in texts(svg))
    assert 'class="band"' not in draw_timeline([moment(0, within=0.0), moment(10)])


def test_events_that_share_a_place_are_one_mark_and_equal_ones_one_line() -> None:
    shown = texts(draw_timeline([moment(at / 1e6, f"closed by peer 10.0.0.1<4{at:04d}>") for at in range(300)]))
    assert [text for text in shown if text.isdigit() and text != "0"] == ["1", "1"], "on the lane and in the list"
    assert any(text.endswith(" x 300") for text in shown)


def test_a_long_silence_is_cut_out_and_its_length_said() -> None:
    shown = texts(draw_timeline([moment(0), moment(5), moment(5 * 86_400), moment(5 * 86_400 + 5)]))
    assert "4 days 23 h" in shown
    assert "1" in shown
    assert "4" in shown, "all four marks apart from each other"


def test_boots_and_captures_are_no_events() -> None:
    assert draw_timeline([moment(0, "the node boots"), moment(9, "the node is captured")]) == ""
    shown = texts(draw_timeline([moment(0, "the node boots"), moment(9, "Link down"), moment(12, "Link up")]))
    assert "2 events on 1 host; the first at 2026-03-02 04:47:29" in shown


def test_one_event_alone_has_no_order_to_draw() -> None:
    assert draw_timeline([moment(0, "Link down")]) == ""


def test_events_without_a_time_are_counted() -> None:
    assert "1 event without a time" in texts(draw_timeline([moment(0), moment(1), Moment(None, "when?")]))
    assert draw_timeline([Moment(None, "when?")]) == ""


def test_many_hosts_and_marks_are_counted() -> None:
    shown = texts(draw_timeline([moment(at, host=f"n{at}") for at in range(1000)]))
    assert any(f"{1000 - MOST_LANES} more hosts not drawn" in text for text in shown)
    shown = texts(draw_timeline([moment(at, host=f"n{at % MOST_LANES}") for at in range(1000)]))
    assert any("more marks not drawn" in text for text in shown)
