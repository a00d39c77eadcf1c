"""Plots: what stands where on a terminal, and that a picture is whole whatever the names and numbers are."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topodiag.draw.plot import bars_svg, plot_svg
from topodiag.draw.scale import BANDWIDTH, MAX_POINTS, SIZE, Axis, Mark, Series, shown, span_of
from topodiag.report.interface import Style
from topodiag.report.plot import draw_bars, draw_plot
from topodiag.report.text import Page

SLOW = Series("slow", [(2.0**power, 30 + 2**power / 3e3) for power in range(12, 31, 2)])
FAST = Series("fast", [(2.0**power, 1 + 2**power / 3e5) for power in range(12, 31, 2)])


def lines(*series: Series, width: int = 80, ascii_only: bool = False, **how: object) -> list[str]:
    page = Page(Style(width=width, ascii=ascii_only))
    draw_plot(page, series, **how)  # type: ignore[arg-type]
    return [line.plain for line in page.lines]


def test_a_slower_link_stands_above_a_faster_one() -> None:
    drawn = lines(SLOW, FAST)
    first = {sign: min(at for at, line in enumerate(drawn) if sign in line) for sign in "●▲"}
    assert first["●"] < first["▲"]


def test_the_legend_and_the_marks_stand_below() -> None:
    drawn = lines(SLOW, FAST, marks=[Mark(1 << 20, "half of the bandwidth")])
    assert drawn[-2:] == ["  ● slow   ▲ fast", "  ┊ half of the bandwidth"]


def test_ascii_stays_ascii() -> None:
    assert "".join(lines(SLOW, FAST, ascii_only=True, marks=[Mark(1 << 20, "µ")])).isascii()


@pytest.mark.parametrize("width", [40, 80, 160])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    assert max(map(len, lines(SLOW, FAST, width=width))) <= width


def test_points_that_a_logarithm_cannot_place_are_left_out() -> None:
    assert lines(Series("zero", [(0.0, 1.0), (1.0, 0.0), (float("nan"), 1.0)])) == []


def test_a_sweep_of_more_sizes_than_are_drawn_is_shown_to_its_end_and_with_its_dip() -> None:
    points = [(float(1 << 20) + number, 100.0) for number in range(3 * MAX_POINTS + 1)]
    points[5000] = (points[5000][0], 10.0)
    across, up = span_of(SIZE, [x for x, _ in points], 6), span_of(BANDWIDTH, [0.0, 100.0], 6)
    drawn = shown(Series("sweep", points), across, up)
    assert len(drawn) <= MAX_POINTS + 1
    assert drawn[-1][0] == across.share(points[-1][0])
    assert min(height for _, height in drawn) == up.share(10.0)


def test_ticks_of_sizes_are_powers_of_two_and_of_times_powers_of_ten() -> None:
    sizes = span_of(SIZE, [4096, 1 << 30], 6)
    rates = span_of(BANDWIDTH, [0.0, 370.0], 6)
    assert [word for _, word in sizes.ticks] == ["4 KiB", "32 KiB", "256 KiB", "2 MiB", "16 MiB", "128 MiB", "1 GiB"]
    assert [word for _, word in rates.ticks] == ["0", "100", "200", "300", "400"]


def test_a_picture_shows_names_as_they_are_and_never_as_markup() -> None:
    drawn = plot_svg([Series("<script>&", FAST.points)], title='"a" & b', marks=[Mark(1 << 20, "</svg>")])
    words = [element.text for element in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert {"<script>&", '"a" & b', "</svg>"} <= set(words)


def test_a_plot_of_nothing_says_so() -> None:
    assert "nothing to show" in plot_svg([])


def test_bars_are_drawn_to_the_greatest() -> None:
    page = Page(Style(width=60))
    draw_bars(page, [("a", 4.0, "4", ""), ("b", 2.0, "2", ""), ("c", 0.001, "0", "")])
    four, two, none = (line.plain.count("█") for line in page.lines)
    assert (four, none) == (two * 2, 0)
    assert ET.fromstring(bars_svg([("a", 4.0, "4 ms")], title="<t>")).tag.endswith("svg")


number = st.floats(allow_nan=True, allow_infinity=True)


@given(
    st.lists(st.lists(st.tuples(number, number), max_size=6), max_size=3),
    st.text(max_size=20),
    st.sampled_from([0, 2, 10]),
    st.sampled_from([0, 2, 10]),
    st.integers(40, 200),
)
@example([[(0.0, 2.0**54 * 0.9999999), (0.0, 2.0**54 * 0.99999999)]], "", 0, 2, 40)  # no power of two between them
def test_any_numbers_and_names_make_a_plot(points: list, name: str, x: int, y: int, width: int) -> None:
    series = [Series(name, point) for point in points]
    across, up = Axis("x", lambda value: f"{value:.3g}", x), Axis("y", BANDWIDTH.spell, y)
    assert all(len(line) <= width for line in lines(*series, width=width, x=across, y=up))
    ET.fromstring(plot_svg(series, x=across, y=up, title=name))
