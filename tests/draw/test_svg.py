"""The helper of all drawings: a document alone or in a page, foreign text as text, colours for every reader."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.draw.shown import texts, whole
from topodiag.draw.svg import HATCHES, PALETTE, STYLE, Canvas, fit, resolved, width_of, wrap


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    low, mid, high = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * low + 0.7152 * mid + 0.0722 * high


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("ground", ["ground", "panel"])
@pytest.mark.parametrize("text", ["ink", "quiet", "bad", "good"])
def test_text_has_a_contrast_of_four_and_a_half(text: str, ground: str, theme: int) -> None:
    assert contrast(PALETTE[text][theme], PALETTE[ground][theme]) >= 4.5


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("line", ["line", "bad", "warn", "good", "net", "other"])
def test_lines_have_a_contrast_of_three(line: str, theme: int) -> None:
    assert contrast(PALETTE[line][theme], PALETTE["ground"][theme]) >= 3


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("fill", [name for name in PALETTE if name.endswith("fill") or name == "cpu"])
def test_ink_is_read_on_every_filling(fill: str, theme: int) -> None:
    assert contrast(PALETTE["ink"][theme], PALETTE[fill][theme]) >= 4.5


def drawing(prefix: str = "", words: str = "words") -> str:
    canvas = Canvas("A title", "what is there", prefix)
    canvas.rect(0, 0, 10, 10, "bad", "tip", hatch="badhatch")
    canvas.text(0, 10, words)
    return canvas.document(100, 50)


def test_a_file_carries_its_style_and_size_and_a_drawing_of_a_page_neither() -> None:
    assert "<style>" in drawing()
    assert 'width="132"' in drawing()
    inside = drawing("p7")
    assert "<style>" not in inside
    assert whole(inside).get("width") is None


def test_two_drawings_of_a_page_share_no_id() -> None:
    ids = [set(re.findall(r' id="([^"]*)"', drawing(prefix))) for prefix in ("a", "b")]
    assert len(ids[0]) == 3
    assert not ids[0] & ids[1]


def test_every_reader_has_colours() -> None:
    assert "prefers-color-scheme:dark" in STYLE
    assert "forced-colors:active" in STYLE
    assert "@media screen and (prefers-color-scheme:dark)" in STYLE, "print is light"


def test_every_class_of_a_hatch_has_a_rule() -> None:
    for _, stroke, fill in HATCHES.values():
        assert f".{stroke}tile" in STYLE
        assert f".{fill}tile" in STYLE


def test_a_converter_gets_plain_colours() -> None:
    plain = resolved(drawing())
    assert "var(" not in plain
    assert "@media" not in plain
    assert PALETTE["bad"][0] in plain
    whole(plain)


@given(st.text(min_size=1, max_size=80))
def test_any_text_is_text(words: str) -> None:
    shown = texts(drawing("p", words))
    assert len(shown) == 1
    assert not set(shown[0]) & {"\x1b", "\u202e", "\x00"}


def test_what_is_cut_is_whole_in_its_tooltip() -> None:
    canvas = Canvas("t")
    canvas.text(0, 0, "a name that is too long for its room", room=80)
    assert "<title>a name that is too long for its room</title>" in canvas.document(10, 10)


@given(st.text(max_size=60), st.integers(20, 300))
def test_what_fits_is_no_wider_than_its_room(words: str, room: int) -> None:
    assert width_of(fit(words, room)) <= max(room, 24)


def test_lines_are_broken_between_words_and_the_last_is_cut() -> None:
    assert wrap("one two three four five six", 80, most=2) == ["one two", "three four…"]
