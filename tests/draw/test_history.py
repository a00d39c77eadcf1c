"""Nodes over time drawn: captures with errors apart from others, parts that went down, and how often."""

from dataclasses import replace

from tests.draw.shown import texts
from topodiag.draw.history import draw_history
from topodiag.model.history import PartStates, Spell, Track

START, DAY = 1_772_352_000.0, 86_400.0
WEEKS = tuple((START + 7 * DAY * week, ("PCI001 GPU5",) if week in {2, 3} else ()) for week in range(6))
FLAPS = PartStates("mlx5_3/1", tuple(
    Spell("DOWN" if number % 2 else "ACTIVE", "b", 0.0, 6 * DAY, START + 7 * DAY * number) for number in range(6)
))  # fmt: skip
NODE = Track("gpu07.site.example", WEEKS, (FLAPS,))


def test_captures_with_errors_are_squares_with_their_checks_and_others_circles() -> None:
    svg = draw_history([NODE])
    assert svg.count("<circle") == 4
    assert svg.count("PCI001 GPU5") == 2
    assert "errors in 2 of 6" in texts(svg)


def test_a_part_that_went_down_has_a_lane_and_a_count() -> None:
    svg = draw_history([NODE])
    assert {"mlx5_3", "down 3 times", "2026-03-01"} <= set(texts(svg))
    assert svg.count("<title>DOWN since 2026-") == 3
    assert "mlx5_3 down 3 times" in svg


def test_a_course_of_hours_has_times_of_day() -> None:
    hours = replace(NODE, captures=(), states=(PartStates("gpu3", (
        Spell("answers", "b", 0.0, 3600.0, START), Spell("lost", "b", 3600.0, 7200.0, START + 3600.0))),))  # fmt: skip
    assert "03-01 10:00" in texts(draw_history([hours]))


def test_many_spells_in_one_place_are_one_bar() -> None:
    spells = tuple(Spell("DOWN" if n % 2 else "ACTIVE", "b", 0.0, 10.0, START + 20.0 * n) for n in range(2_000))
    svg = draw_history([Track("n", ((START, ()), (START + 90 * DAY, ())), (PartStates("mlx5_0", spells),))])
    assert "down 1000 times" in texts(svg)
    assert len(svg) < 12_000


def test_without_a_course_there_is_no_picture() -> None:
    assert draw_history([]) == ""
    assert draw_history([Track("n", ((START, ()),))]) == "", "one capture is no course"
    assert draw_history([Track("n", ((1e300, ()), (-5.0, ())))]) == "", "times that no calendar has"


def test_of_very_many_nodes_the_rest_is_counted() -> None:
    assert any("24 more nodes not drawn" in text for text in texts(draw_history([NODE] * 40)))
